#pragma once

// The whole command line, for both programs.

#include "options/command_line/command.hpp"

namespace pipewright::cli {

/// The commands that need LibTorch.
struct TorchCommands {
  Command run, profile, train, save, generate;
};

/// Returns all commands in the order of the help, and those that describe them to shells and `man`.
CommandLine whole_program(TorchCommands torch);

}  // namespace pipewright::cli
