#pragma once

// Better orders out of good ones, by simulated annealing (Kirkpatrick et al., Science 1983): one
// action moves a few places on its stage; worse orders pass too, the less often the worse they are
// and the further the temperature has fallen.

#include <vector>

#include "problem.hpp"

namespace pipewright::plan::zero_bubble {

/// The best orders met, at worst `orders`. Ends when a longest span of `bound` is met or the steps
/// are done; their number falls with the size of the problem. Chance comes from a fixed seed.
std::vector<Order> anneal(const Problem& problem, std::vector<Order> orders, double bound);

}  // namespace pipewright::plan::zero_bubble
