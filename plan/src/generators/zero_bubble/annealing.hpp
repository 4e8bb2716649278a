#pragma once

// Improves good orders by simulated annealing (Kirkpatrick et al., Science 1983). One action at a
// time moves a few places on its stage. Worse orders are accepted too, less often the worse they
// are and the lower the temperature.

#include <vector>

#include "problem.hpp"

namespace pipewright::plan::zero_bubble {

/// Returns the best orders found, which are no worse than `orders`. Ends when the longest span
/// reaches `bound` or the steps are used up; their number falls with the size of the problem. The
/// random seed is fixed.
std::vector<Order> anneal(const Problem& problem, std::vector<Order> orders, double bound);

}  // namespace pipewright::plan::zero_bubble
