#pragma once

// The memory that this process may still allocate, from its limits and the machine's free memory.

#include "pipewright/plan/quantity.hpp"

namespace pipewright::exec {

/// Returns the smallest of the remainders of its limits (`ulimit -v` and `-d`, its cgroup's memory)
/// and the machine's available memory (MemAvailable); the largest number if all are unknown.
plan::Bytes memory_left();

/// Returns freed memory to the system; otherwise the heap keeps it for later allocations.
void give_memory_back();

}  // namespace pipewright::exec
