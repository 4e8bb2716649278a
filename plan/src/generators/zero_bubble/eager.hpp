#pragma once

// Orders of stages that never wait while they could work. Where memory is short they beat the
// greedy ones, whose stages never run ahead of the round.

#include <vector>

#include "problem.hpp"

namespace pipewright::plan::zero_bubble {

/// Where a stage could start one of several actions, an input gradient goes before a forward, and
/// a forward before a weight gradient.
std::vector<Order> eager_orders(const Problem& problem);

}  // namespace pipewright::plan::zero_bubble
