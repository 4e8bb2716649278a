#pragma once

// A timeout that is never reached.

#include <chrono>

namespace pipewright::exec {

/// Used for waits that the job's end interrupts. It is close to the longest time that LibTorch can
/// pass on to poll(), which counts milliseconds in an int.
constexpr std::chrono::milliseconds no_timeout = std::chrono::hours(24 * 20);

}  // namespace pipewright::exec
