#pragma once

// Parses a command line into the options of a command.

#include "options/command_line/command.hpp"

namespace pipewright::cli {

/// Parses the arguments into the options of the command that they name, and returns it. If they
/// name none, request help or the version, or are invalid, prints the answer and returns null, with
/// the exit code in `code`.
const Command* parse(const CommandLine& line, int argc, const char* const* argv, int& code);

}  // namespace pipewright::cli
