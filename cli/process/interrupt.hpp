#pragma once

// Converts signals to flags that long-running work checks.

#include <atomic>

namespace pipewright::cli {

/// Makes Ctrl-C (or SIGTERM) set the flag below instead of ending the program; a second one ends it
/// at once.
void catch_interrupts();

/// Returns the flag that is set once the user requests a stop.
const std::atomic<bool>& interrupted();

/// Makes SIGUSR1 set the flag below instead of ending the program.
void catch_calls();

/// Returns true if there was a SIGUSR1 since the last call.
bool was_called();

}  // namespace pipewright::cli
