#pragma once

// What the commands show of a plan.

#include <string>
#include <vector>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/model/model.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/plan/timeline/timeline.hpp"
#include "pipewright/sim/scenario/scenario_plan.hpp"

namespace pipewright::cli {

/// What the items of each part weigh together.
std::vector<double> sums_of(const std::vector<double>& weights, const std::vector<int>& boundaries);

/// What to say when ranks are more than cores; else nothing.
std::string core_warning(const plan::Scenario& scenario);

/// What to say when ranks are more than the cluster's devices; else nothing.
std::string device_warning(const plan::Scenario& scenario);

/// The plan in a few lines: stages with their layers, the schedule's head.
std::string plan_table(const sim::ScenarioPlan& plan, const plan::LayerCosts& costs);

}  // namespace pipewright::cli
