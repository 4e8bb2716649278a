#pragma once

// Signals as flags, which long work looks at.

#include <atomic>

namespace pipewright::cli {

/// From here on Ctrl-C (or SIGTERM) sets the flag below instead of ending the program; a second one
/// ends it at once.
void catch_interrupts();

/// Set once the user asked to stop.
const std::atomic<bool>& interrupted();

/// From here on SIGUSR1 sets the flag below instead of ending the program.
void catch_calls();

/// Whether there was a SIGUSR1 since it was asked last.
bool was_called();

}  // namespace pipewright::cli
