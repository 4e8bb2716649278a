#pragma once

// Counts what the whole test program takes from the heap: operator new is replaced here.

#include <cstddef>

namespace pipewright::test {

/// How often this thread has called operator new so far.
std::size_t allocations();

}  // namespace pipewright::test
