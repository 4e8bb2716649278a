#pragma once

// What a runtime takes beside the layers that it runs, as `profile --runtime` measures it.

#include <string>
#include <vector>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::plan {

struct StageCost;

/// Seconds of a rank's own thread.
struct RuntimeCost {
  std::string name;   // such as "torch 2.11.0"
  Seconds forward{};  // of an action, as are the next three
  Seconds backward{};
  Seconds input_gradient{};
  Seconds weight_gradient{};
  Seconds iteration{};  // once for each step
  // For which a message keeps its ends from computing, and the bytes per second by which that
  // grows; 0: it does not.
  Seconds send{};
  double send_bandwidth_per_s = 0;
  Seconds receive{};
  double receive_bandwidth_per_s = 0;
  /// Where a backward has two parts, the first stage's first part does nothing and the second all
  /// of it, as in torch: nobody waits for the gradient of its input.
  bool whole_first_backward = false;
  friend bool operator==(const RuntimeCost&, const RuntimeCost&) = default;
};

RuntimeCost runtime_cost_from_json(const JsonDocument& document);

/// `stages`: of all layers' work, the first one first; then also of what runs it.
void add_actions(std::vector<StageCost>& stages, const RuntimeCost& runtime);

}  // namespace pipewright::plan
