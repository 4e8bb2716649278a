#pragma once

// What all programs of ours share: their command line, and their exit codes for every failure.

#include "exit_code.hpp"
#include "options/command_line/command.hpp"

namespace pipewright::cli {

/// A program that this one has started has failed, and has said why.
struct ProgramFailed {
  int exit_code = NegativeAnswer;
};

/// The command line of both programs, with the commands of one.
CommandLine pipewright_with(std::vector<Command> commands);

/// Runs the command that the words name. Every way to fail has its exit code here and nowhere else.
int run(const CommandLine& line, int argc, const char* const* argv);

}  // namespace pipewright::cli
