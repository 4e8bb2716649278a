#pragma once

#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

/// Proves that the Program can run: its compute actions are a sound Schedule, every send has its
/// receive, data is there before it is used, no two live microbatches share a slot, and no ranks
/// wait for each other for ever under the Program's communicators and transfers.
/// Throws InputError that names rank, instruction and reason.
void validate(const Program& program);

}  // namespace pipewright::plan
