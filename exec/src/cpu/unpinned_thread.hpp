#pragma once

// Threads that serve a rank without taking its core.

#include <functional>
#include <thread>

namespace pipewright::exec {

/// A thread that may run wherever the process may, as soon as it has something to do: one that is
/// started by a rank's thread would share the core to which that is pinned.
std::thread unpinned_thread(std::function<void()> body);

}  // namespace pipewright::exec
