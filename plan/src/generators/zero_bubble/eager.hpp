#pragma once

// Orders of stages that never wait while they could work. Where memory is short they beat the
// greedy ones, whose stages never run ahead of the round.

#include <vector>

#include "problem.hpp"

namespace pipewright::plan::zero_bubble {

/// Of what a stage could start first, the input gradient goes before the forward and that before
/// the weight gradient.
std::vector<Order> eager_orders(const Problem& problem);

}  // namespace pipewright::plan::zero_bubble
