#pragma once

// From the words of a command line to the options of a command.

#include "options/command_line/command.hpp"

namespace pipewright::cli {

/// Reads the words into the options of the command that they name, and returns it. Where they name
/// none, ask for help or the version, or are wrong, prints what there is to say and returns
/// nothing, with the exit code in `code`.
const Command* parse(const CommandLine& line, int argc, const char* const* argv, int& code);

}  // namespace pipewright::cli
