#pragma once

// Generates completion scripts from the description of the command line.

#include <string>

#include "options/command_line/command.hpp"

namespace pipewright::cli {

/// Return the scripts with which a shell completes commands, options, their values and files.
std::string bash_completion(const CommandLine& line);
std::string zsh_completion(const CommandLine& line);
std::string fish_completion(const CommandLine& line);

}  // namespace pipewright::cli
