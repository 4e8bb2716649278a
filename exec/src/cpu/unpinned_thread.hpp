#pragma once

// Threads that serve a rank without taking its core.

#include <functional>
#include <thread>

namespace pipewright::exec {

/// Starts a thread that may run on every core of the process. A thread that a rank's thread starts
/// would otherwise inherit the core to which that thread is pinned.
std::thread unpinned_thread(std::function<void()> body);

}  // namespace pipewright::exec
