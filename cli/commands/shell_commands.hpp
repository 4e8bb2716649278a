#pragma once

// What shells and `man` need of the command line.

#include <vector>

#include "options/command_line/command.hpp"

namespace pipewright::cli {

/// `completion` and `manual`, which print what shells and `man` take, of these commands and of
/// themselves.
std::vector<Command> shell_commands(const CommandLine& line);

}  // namespace pipewright::cli
