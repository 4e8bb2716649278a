#pragma once

// The progress of a stage while its order is being built.

#include <vector>

#include "problem.hpp"

namespace pipewright::plan::zero_bubble {

struct Progress {
  Order order;
  std::vector<double> forward_ends;         // by microbatch
  std::vector<double> input_gradient_ends;  // by microbatch
  int weight_gradients = 0;
  double free_at = 0;
  double idle = 0;  // since its first action

  int forwards() const { return static_cast<int>(forward_ends.size()); }
  int input_gradients() const { return static_cast<int>(input_gradient_ends.size()); }
  int owed_weight_gradients() const { return input_gradients() - weight_gradients; }
  int held_units() const { return 2 * forwards() - input_gradients() - weight_gradients; }

  /// Runs the next action of a kind, whose input arrives at `arrival`.
  void run(ActionKind kind, double arrival, const PassTimes& times);
};

}  // namespace pipewright::plan::zero_bubble
