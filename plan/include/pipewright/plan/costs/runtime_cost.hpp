#pragma once

// Overhead of a runtime on top of the layers that it runs, as `profile --runtime` measures it.

#include <string>
#include <vector>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::plan {

struct StageCost;

/// Seconds of the rank's own thread.
struct RuntimeCost {
  std::string name;   // such as "torch 2.11.0"
  Seconds forward{};  // per action, as the next three
  Seconds backward{};
  Seconds input_gradient{};
  Seconds weight_gradient{};
  Seconds iteration{};  // once for each step
  // Time for which a message keeps each of its ends from computing, and the bytes per second by
  // which that time grows; 0: it does not grow.
  Seconds send{};
  double send_bandwidth_per_s = 0;
  Seconds receive{};
  double receive_bandwidth_per_s = 0;
  /// True if the first stage of a split backward does all its work in the second part and none in
  /// the first, as in torch, because no other stage needs the gradient of its input.
  bool whole_first_backward = false;
  friend bool operator==(const RuntimeCost&, const RuntimeCost&) = default;
};

RuntimeCost runtime_cost_from_json(const JsonDocument& document);

/// Adds the runtime's overheads to the stages of a pipeline, of which `stages` has only the layers'
/// work, in stage order.
void add_actions(std::vector<StageCost>& stages, const RuntimeCost& runtime);

}  // namespace pipewright::plan
