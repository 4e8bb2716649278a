#pragma once

// Cancellation of long-running work.

#include <cstddef>
#include <functional>

namespace pipewright::plan {

/// Thrown when a stop flag cancels the work.
struct Stopped {};

/// Progress callback: receives the amount done and the total. The work is canceled when it returns
/// false.
using ProgressCallback = std::function<bool(std::size_t done, std::size_t of)>;

}  // namespace pipewright::plan
