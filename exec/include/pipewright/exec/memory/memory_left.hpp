#pragma once

// How much more memory this process may take: what its limits and the machine have left.

#include "pipewright/plan/quantity.hpp"

namespace pipewright::exec {

/// The least of what is left of its limits (`ulimit -v` and `-d`, its cgroup's memory) and of what
/// the machine can give (MemAvailable); the largest number where nobody tells.
plan::Bytes memory_left();

/// Memory that was freed goes back to the system; without this the heap keeps it for what comes.
void give_memory_back();

}  // namespace pipewright::exec
