#pragma once

// The initial cost of searches for a minimum.

#include <limits>

namespace pipewright::plan {

/// The cost of an impossible choice.
inline constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace pipewright::plan
