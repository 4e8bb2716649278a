#pragma once

// What a millisecond less would save of an iteration, wherever it is saved; and which actions could
// take longer for nothing.

#include <string>
#include <vector>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/sim/scenario/scenario_plan.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::loop {

struct Saving {
  enum class Part { Stage, Layer, Link };
  Part part = Part::Stage;
  int stage = -1;  // of a stage, and the one that a layer is in
  int layer = -1;
  int from = -1;  // the ranks of a link
  int to = -1;
  /// Milliseconds of an iteration for each millisecond less: of a stage or layer, for every
  /// microbatch; of a link, for each of its transfers.
  double saved = 0;
  std::string text;  // "1 ms less in layer 17 (block17) for each microbatch saves 7.500 ms"
};

/// Sorted by what is saved; of equals stages come first, then layers, then links.
std::vector<Saving> savings_of(const sim::ScenarioPlan& plan, const sim::Times& times,
                               const plan::LayerCosts& costs);

/// How much later an action could end with the iteration as long as it is.
struct ActionSlack {
  int event = 0;
  int rank = 0;
  double slack_s = 0;
  std::string text;  // "2F5 on rank 2 could end 1.200 ms later", "… is on the critical path"
};
/// `slack`: in seconds and by event.
ActionSlack in_words(const sim::Structure& structure, const std::vector<double>& slack, int event);

}  // namespace pipewright::loop
