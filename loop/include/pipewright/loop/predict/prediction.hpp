#pragma once

// One iteration as an engine predicts it, with everything that can be said of it.

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
  std::vector<std::vector<sim::Holder>> at_peaks;  // by rank, the largest first
  std::vector<int> critical;                       // events
  plan::Timeline timeline;
};

/// All that can be said of an iteration in which everything ran at these times.
Prediction predict(const plan::Scenario& scenario, const sim::ScenarioPlan& plan, sim::Times times);
/// The native engine's. Throws InputError for costs that cannot be used.
Prediction predict(const plan::Scenario& scenario, const sim::ScenarioPlan& plan);

/// The length of the critical path by what runs on it, the largest first: stages, transfers,
/// reductions, the rest.
std::vector<std::pair<std::string, double>> critical_shares(const sim::Structure& structure,
                                                            const sim::Times& times,
                                                            const std::vector<int>& critical);

/// rank, action, start_s, end_s, slack_s and critical (0 or 1) of every instruction. The slack
/// is how much later the instruction could end with the iteration as long as it is.
std::string actions_csv(const Prediction& prediction, const sim::ScenarioPlan& plan);
/// `memory`: of each rank, as `sim::device_memory` says it.
plan::Json prediction_json(const Prediction& prediction, const sim::ScenarioPlan& plan,
                           const plan::LayerCosts& costs, const sim::Throughput& throughput,
                           const std::vector<models::DeviceMemory>& memory);

}  // namespace pipewright::loop
