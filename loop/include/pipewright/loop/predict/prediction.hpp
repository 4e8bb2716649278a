#pragma once

// The prediction of one iteration: times, idle time, memory, critical path and timeline.

#include <string>
#include <utility>
#include <vector>

#include "pipewright/models/allocator/device_memory.hpp"
#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/plan/timeline/timeline.hpp"
#include "pipewright/sim/causes/idle.hpp"
#include "pipewright/sim/memory/memory.hpp"
#include "pipewright/sim/scenario/scenario_plan.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::loop {

struct Prediction {
  sim::Times times;
  sim::IdleTime idle;
  std::vector<sim::MemoryPeak> peaks;              // by rank
  std::vector<std::vector<sim::Holder>> at_peaks;  // by rank, the largest holder first
  std::vector<int> critical;                       // events on the critical path
  plan::Timeline timeline;
};

/// Derives the prediction from the given times of all events.
Prediction predict(const plan::Scenario& scenario, const sim::ScenarioPlan& plan, sim::Times times);
/// Predicts with the native engine. Throws InputError if the costs cannot be used.
Prediction predict(const plan::Scenario& scenario, const sim::ScenarioPlan& plan);

/// Splits the length of the critical path by what runs on it (stages, transfers, reductions, the
/// rest), the largest share first.
std::vector<std::pair<std::string, double>> critical_shares(const sim::Structure& structure,
                                                            const sim::Times& times,
                                                            const std::vector<int>& critical);

/// Returns CSV with rank, action, start_s, end_s, slack_s and critical (0 or 1) of every
/// instruction. The slack is how much later the instruction could end without making the iteration
/// longer.
std::string actions_csv(const Prediction& prediction, const sim::ScenarioPlan& plan);
/// Returns the prediction as JSON. `memory` is by rank, as `sim::device_memory` returns it.
plan::Json prediction_json(const Prediction& prediction, const sim::ScenarioPlan& plan,
                           const plan::LayerCosts& costs, const sim::Throughput& throughput,
                           const std::vector<models::DeviceMemory>& memory);

}  // namespace pipewright::loop
