#pragma once

// Prints the prediction of `simulate` as text.

#include <string>
#include <vector>

#include "pipewright/loop/predict/prediction.hpp"
#include "pipewright/models/allocator/device_memory.hpp"

namespace pipewright::cli {

/// Returns the prediction; `memory` is by rank.
std::string prediction_table(const loop::Prediction& prediction, const sim::ScenarioPlan& plan,
                             const plan::LayerCosts& costs, const sim::Throughput& throughput,
                             const std::vector<models::DeviceMemory>& memory);
std::string sensitivity_table(const sim::ScenarioPlan& plan, const sim::Times& times,
                              const plan::LayerCosts& costs);

}  // namespace pipewright::cli
