#pragma once

// The common part of all our programs: their command line, and their exit codes for every failure.

#include "exit_code.hpp"
#include "options/command_line/command.hpp"

namespace pipewright::cli {

/// Thrown if a program that this one started has failed and printed why.
struct ProgramFailed {
  int exit_code = NegativeAnswer;
};

/// Returns the command line of a program with these commands.
CommandLine pipewright_with(std::vector<Command> commands);

/// Runs the command that the arguments name. All exit codes of failures are decided here.
int run(const CommandLine& line, int argc, const char* const* argv);

}  // namespace pipewright::cli
