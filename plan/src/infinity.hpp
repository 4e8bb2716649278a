#pragma once

// Searches for the cheapest begin with this cost.

#include <limits>

namespace pipewright::plan {

/// The cost of what is not possible.
inline constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace pipewright::plan
