#pragma once

// Largest sizes of a transformer in a file: far above any real model, but small enough that a
// product of two cannot overflow.

namespace pipewright::plan {

inline constexpr double most_layers = 10'000;
inline constexpr double most_channels = 16'777'216;
inline constexpr double most_tokens = 1'000'000'000;

}  // namespace pipewright::plan
