#pragma once

// Exit codes, the same for every program.

namespace pipewright::cli {

/// What every program of ours ends with.
enum ExitCode {
  Done = 0,
  NegativeAnswer = 1,  // or failed work
  BadInput = 2,        // or bad usage
  SlowForGood = 3,     // of a rank that makes room for another
  CannotStart = 127,   // of a child that was to become another program, as shells have it
  Interrupted = 130,
};

}  // namespace pipewright::cli
