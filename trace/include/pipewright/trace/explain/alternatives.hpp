#pragma once

// What another schedule, cut or microbatch count would make of a traced iteration, simulated with
// the costs that the traces show.

#include <functional>
#include <string>
#include <vector>

#include "pipewright/trace/explain/traced_costs.hpp"

namespace pipewright::trace {

struct Alternative {
  /// As `simulate SCENARIO --set` takes them, a space between two.
  std::string change;
  double iteration_s = 0;
  int activations = 0;  // of one microbatch on one stage, that the fullest rank keeps at most
  /// Where its stages behind the first begin, where another cut is made.
  std::vector<TracedLayer> cut{};
};

struct Alternatives {
  double now_s = 0;              // the traced order, simulated with the same costs
  int activations = 0;           // that it keeps, likewise
  std::vector<Alternative> all;  // the quickest first
};

/// Schedules of the catalogue that flush and leave the trained weights as they are. `ask` is called
/// before each, and may throw.
Alternatives alternatives(const TracedPipeline& pipeline, const TracedCosts& traced,
                          const std::function<void()>& ask);

}  // namespace pipewright::trace
