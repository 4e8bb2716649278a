#pragma once

// Simulates a traced iteration with another schedule, partition or microbatch count, using the
// costs measured in the traces.

#include <functional>
#include <string>
#include <vector>

#include "pipewright/trace/explain/traced_costs.hpp"

namespace pipewright::trace {

struct Alternative {
  /// The settings as `simulate SCENARIO --set` takes them, separated by spaces.
  std::string change;
  double iteration_s = 0;
  int activations = 0;  // peak count, on the fullest rank, of saved microbatch activations (one
                        // stage each)
  /// The layers with which the second and later stages begin, if the partition differs.
  std::vector<TracedLayer> cut{};
};

struct Alternatives {
  double now_s = 0;              // the traced order, simulated with the same costs
  int activations = 0;           // peak count of saved activations of the traced order
  std::vector<Alternative> all;  // fastest first
};

/// Simulates those schedules of the catalog that flush and leave the trained weights unchanged.
/// `ask` is called before each one and may throw to cancel.
Alternatives alternatives(const TracedPipeline& pipeline, const TracedCosts& traced,
                          const std::function<void()>& ask);

}  // namespace pipewright::trace
