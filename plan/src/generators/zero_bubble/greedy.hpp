#pragma once

// Good orders at once: the heuristic of "Zero Bubble Pipeline Parallelism" (Qi et al., ICLR 2024)
// runs all stages against one clock and decides action by action.

#include "problem.hpp"

namespace pipewright::plan::zero_bubble {

/// Where the heuristic could decide either way. No choice is best everywhere.
struct GreedyPolicy {
  /// Before its first input gradient, a stage waits rather than delay that by one more forward.
  bool wait_for_first_gradient = false;
  /// A stage that is ahead waits for the next input gradient rather than delay it by a forward,
  /// when the wait does not make it the stage that has idled most.
  bool gradient_before_forward = false;
  /// A weight gradient fills a wait that is too short for it even when the wait would not make this
  /// the stage that has idled most.
  bool overfill_waits = false;
};

std::vector<Order> greedy_orders(const Problem& problem, const GreedyPolicy& policy);

}  // namespace pipewright::plan::zero_bubble
