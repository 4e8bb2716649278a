#pragma once

// Ctrl-C as a flag, which long work looks at.

#include <atomic>

namespace pipewright::cli {

/// From here on Ctrl-C (or SIGTERM) sets the flag below instead of ending the program; a second one
/// ends it at once.
void catch_interrupts();

/// Set once the user asked to stop.
const std::atomic<bool>& interrupted();

}  // namespace pipewright::cli
