#pragma once

// Completion scripts, made of the command line's own description.

#include <string>

#include "options/command_line/command.hpp"

namespace pipewright::cli {

/// The script with which a shell completes commands, options, their words and files.
std::string bash_completion(const CommandLine& line);
std::string zsh_completion(const CommandLine& line);
std::string fish_completion(const CommandLine& line);

}  // namespace pipewright::cli
