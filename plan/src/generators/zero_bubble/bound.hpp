#pragma once

// How short a zero-bubble schedule can be at best.

#include "problem.hpp"

namespace pipewright::plan::zero_bubble {

/// No orders have a shorter longest span. The proof stands in the source.
double lower_bound(const Problem& problem);

}  // namespace pipewright::plan::zero_bubble
