#pragma once

// Transfers that share a queue start one after the other: which queue each has.

#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

/// The in-order queue of a transfer on its own rank, as a number below twice the number of ranks:
/// which peer, and under `Edge` which direction.
int queue_of(const Program& program, const Instruction& transfer);

}  // namespace pipewright::plan
