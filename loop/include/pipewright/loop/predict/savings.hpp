#pragma once

// How much an iteration would gain if a stage, layer or link took a millisecond less, and how much
// longer an action could take at no cost.

#include <string>
#include <vector>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/sim/scenario/scenario_plan.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::loop {

struct Saving {
  enum class Part { Stage, Layer, Link };
  Part part = Part::Stage;
  int stage = -1;  // the stage, or the stage that contains the layer
  int layer = -1;
  int from = -1;  // sending rank of a link
  int to = -1;
  /// Milliseconds saved per iteration for each millisecond that a stage or layer takes less for
  /// every microbatch, or that a link takes less for each of its transfers.
  double saved = 0;
  std::string text;  // "1 ms less in layer 17 (block17) for each microbatch saves 7.500 ms"
};

/// Returns the savings, the largest first. Equal savings are ordered as stages, then layers, then
/// links.
std::vector<Saving> savings_of(const sim::ScenarioPlan& plan, const sim::Times& times,
                               const plan::LayerCosts& costs);

/// How much later an action could end without making the iteration longer.
struct ActionSlack {
  int event = 0;
  int rank = 0;
  double slack_s = 0;
  std::string text;  // "2F5 on rank 2 could end 1.200 ms later", "… is on the critical path"
};
/// Describes the slack of `event`. `slack` is in seconds and indexed by event.
ActionSlack in_words(const sim::Structure& structure, const std::vector<double>& slack, int event);

}  // namespace pipewright::loop
