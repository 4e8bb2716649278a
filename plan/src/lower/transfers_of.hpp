#pragma once

// The transfers that an action needs before and after it.

#include <optional>

#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

/// Returns the receive of an action's input and the send of its result, or nothing if that stage
/// boundary does not lie between two ranks.
std::optional<Instruction> receive_of(const Program& program, const Instruction& i);
std::optional<Instruction> send_of(const Program& program, const Instruction& i);

}  // namespace pipewright::plan
