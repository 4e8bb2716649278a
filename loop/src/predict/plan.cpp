#include "pipewright/loop/predict/plan.hpp"

#include "pipewright/loop/predict/prediction.hpp"

namespace pipewright::loop {

Plan make_plan(const plan::Scenario& scenario, const plan::LayerCosts& costs) {
  Plan plan{sim::lay_out(scenario, costs), {}};
  sim::require_memory(scenario, costs, plan, /*trained=*/true);
  plan.predicted = predict(scenario, plan).timeline;
  return plan;
}

}  // namespace pipewright::loop
