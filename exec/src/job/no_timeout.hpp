#pragma once

// A timeout that never comes.

#include <chrono>

namespace pipewright::exec {

/// For waits that a job's end cuts short. Close to the longest that LibTorch can pass on to poll(),
/// which counts milliseconds in an int.
constexpr std::chrono::milliseconds no_timeout = std::chrono::hours(24 * 20);

}  // namespace pipewright::exec
