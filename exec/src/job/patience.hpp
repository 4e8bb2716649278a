#pragma once

#include <chrono>

namespace pipewright::exec {

/// For waits that a job's end cuts short. Close to the longest that LibTorch can pass on to poll(),
/// which counts milliseconds in an int.
constexpr std::chrono::milliseconds for_ever = std::chrono::hours(24 * 20);

}  // namespace pipewright::exec
