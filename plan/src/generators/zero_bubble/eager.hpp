#pragma once

// Builds orders in which a stage never waits while it could work. With little memory they beat the
// greedy orders, in which a stage never runs ahead of the round.

#include <vector>

#include "problem.hpp"

namespace pipewright::plan::zero_bubble {

/// Builds eager orders. If a stage could start several actions, an input gradient goes before a
/// forward, and a forward before a weight gradient.
std::vector<Order> eager_orders(const Problem& problem);

}  // namespace pipewright::plan::zero_bubble
