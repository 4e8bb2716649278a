#pragma once

// Exit codes, the same for every program.

namespace pipewright::cli {

/// The exit codes of all our programs.
enum ExitCode {
  Done = 0,
  NegativeAnswer = 1,      // or failed work
  BadInput = 2,            // or bad usage
  PermanentStraggler = 3,  // a persistently slow rank that left its job
  CannotStart = 127,       // a child that could not become another program, as in shells
  Interrupted = 130,
};

}  // namespace pipewright::cli
