#pragma once

// What `simulate` shows of a prediction, for people.

#include <string>
#include <vector>

#include "pipewright/loop/predict/prediction.hpp"
#include "pipewright/models/allocator/memory_verdict.hpp"

namespace pipewright::cli {

/// `reserved`: by rank.
std::string prediction_table(const loop::Prediction& prediction, const sim::ScenarioPlan& plan,
                             const plan::LayerCosts& costs, const sim::Throughput& throughput,
                             const std::vector<models::ReservedMemory>& reserved);
std::string sensitivity_table(const sim::ScenarioPlan& plan, const sim::Times& times,
                              const plan::LayerCosts& costs);

}  // namespace pipewright::cli
