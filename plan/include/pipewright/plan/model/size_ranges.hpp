#pragma once

// How large the sizes of a transformer may be in a file: far more than any has, and so little that
// products of two stay far from overflow.

namespace pipewright::plan {

inline constexpr double most_layers = 10'000;
inline constexpr double most_channels = 16'777'216;
inline constexpr double most_tokens = 1'000'000'000;

}  // namespace pipewright::plan
