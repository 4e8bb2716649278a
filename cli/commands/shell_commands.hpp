#pragma once

// The commands that describe the command line to shells and `man`.

#include <vector>

#include "options/command_line/command.hpp"

namespace pipewright::cli {

/// Returns `completion` and `manual`, which print the completion scripts and the manual page of
/// these commands and of themselves.
std::vector<Command> shell_commands(const CommandLine& line);

}  // namespace pipewright::cli
