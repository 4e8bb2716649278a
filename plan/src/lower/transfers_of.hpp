#pragma once

// Which transfers an action needs before it and behind it.

#include <optional>

#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

/// The receive that brings what an action takes in, and the send that takes its result on; nothing
/// where no border between ranks lies there.
std::optional<Instruction> receive_of(const Program& program, const Instruction& i);
std::optional<Instruction> send_of(const Program& program, const Instruction& i);

}  // namespace pipewright::plan
