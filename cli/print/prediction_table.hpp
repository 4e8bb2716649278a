#pragma once

// What `simulate` shows of a prediction, for people.

#include <string>

#include "pipewright/loop/prediction.hpp"

namespace pipewright::cli {

std::string prediction_table(const loop::Prediction& prediction, const sim::ScenarioPlan& plan,
                             const plan::LayerCosts& costs, const sim::Throughput& throughput);
std::string sensitivity_table(const sim::ScenarioPlan& plan, const sim::Times& times,
                              const plan::LayerCosts& costs);

}  // namespace pipewright::cli
