#pragma once

// Builds good orders quickly with the heuristic of "Zero Bubble Pipeline Parallelism" (Qi et al.,
// ICLR 2024), which simulates all stages on one clock and decides action by action.

#include "problem.hpp"

namespace pipewright::plan::zero_bubble {

/// The choices that the heuristic leaves open. No setting is best for all problems.
struct GreedyPolicy {
  /// Before its first input gradient, a stage waits if one more forward would delay that gradient.
  bool wait_for_first_gradient = false;
  /// A stage that is ahead waits for the next input gradient if a forward would delay it, unless
  /// the wait makes it the stage with the most idle time.
  bool gradient_before_forward = false;
  /// A weight gradient fills a wait that is too short for it, even if the wait would not make this
  /// the stage with the most idle time.
  bool overfill_waits = false;
};

std::vector<Order> greedy_orders(const Problem& problem, const GreedyPolicy& policy);

}  // namespace pipewright::plan::zero_bubble
