#include "pipewright/plan/costs/runtime_cost.hpp"

#include "pipewright/plan/costs/stage_costs.hpp"

namespace pipewright::plan {

void add_actions(std::vector<StageCost>& stages, const RuntimeCost& runtime) {
  for (StageCost& stage : stages) {
    const Seconds whole = backward_time(stage);
    if (runtime.whole_first_backward && &stage == &stages.front()) {
      stage.input_gradient = {};
      stage.weight_gradient = whole;
      stage.freed_by_input_gradient = {};
    }
    stage.forward += runtime.forward;
    stage.input_gradient += runtime.input_gradient;
    stage.weight_gradient += runtime.weight_gradient;
    stage.splitting = stage.input_gradient + stage.weight_gradient - (whole + runtime.backward);
  }
}

}  // namespace pipewright::plan
