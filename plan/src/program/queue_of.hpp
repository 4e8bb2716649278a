#pragma once

// In-order queues of transfers. Transfers in the same queue start one after the other.

#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

/// Returns the in-order queue of a transfer on its own rank, as a number below twice the number of
/// ranks. It identifies the peer and, under `Edge`, the direction.
int queue_of(const Program& program, const Instruction& transfer);

}  // namespace pipewright::plan
