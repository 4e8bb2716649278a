#pragma once

// The proof that a Program can run to its end, which everybody calls who is about to run one.

#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

/// Proves that the Program can run: its compute actions are a sound Schedule, every send has its
/// receive, data is there before it is used, no two live microbatches share a slot, and no ranks
/// wait for each other for ever under the Program's communicators and transfers.
/// Throws InputError that names rank, instruction and reason.
void validate(const Program& program);
/// The same under other communicators and transfers than its own. Edge and eager deadlock least:
/// what deadlocks under them has no sound order.
void validate(const Program& program, CommunicatorLayout communicators, TransferMode transfers);

}  // namespace pipewright::plan
