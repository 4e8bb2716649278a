#pragma once

// Proof that a Program can run to its end. Call it before running a Program.

#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

/// Proves that the Program can run: its compute actions are a valid Schedule, every send has its
/// receive, data is available before it is used, no two live microbatches share a slot, and no
/// ranks wait for each other forever under the Program's communicators and transfers. Throws
/// InputError that names rank, instruction and reason.
void validate(const Program& program);
/// Validates the Program under other communicators and transfers than its own. Edge with eager
/// transfers deadlocks least: a Program that deadlocks under them has no valid order.
void validate(const Program& program, CommunicatorLayout communicators, TransferMode transfers);

}  // namespace pipewright::plan
