#pragma once

// Counts the heap allocations of the whole test program: operator new is replaced here.

#include <cstddef>

namespace pipewright::test {

/// Returns how often this thread has called operator new so far.
std::size_t allocations();

}  // namespace pipewright::test
