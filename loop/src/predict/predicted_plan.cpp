#include "pipewright/loop/predict/predicted_plan.hpp"

namespace pipewright::loop {

PredictedPlan predicted_plan(const plan::Scenario& scenario, const plan::LayerCosts& costs) {
  sim::sound_program(scenario);
  PredictedPlan predicted{.plan = sim::lay_out(scenario, costs), .prediction = {}};
  sim::require_memory(scenario, costs, predicted.plan);
  predicted.prediction = predict(scenario, predicted.plan);
  return predicted;
}

}  // namespace pipewright::loop
