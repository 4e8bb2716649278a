#pragma once

// Prints a plan for several commands.

#include <string>
#include <vector>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/model/model.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/plan/timeline/timeline.hpp"
#include "pipewright/sim/scenario/scenario_plan.hpp"

namespace pipewright::cli {

/// Returns the total weight of each part.
std::vector<double> sums_of(const std::vector<double>& weights, const std::vector<int>& boundaries);

/// Returns a note if there are more ranks than cores; otherwise an empty string.
std::string core_warning(const plan::Scenario& scenario);

/// Returns a note if there are more ranks than devices in the cluster; otherwise an empty string.
std::string device_warning(const plan::Scenario& scenario);

/// Returns the plan in a few lines: partition, and stages with their layers.
std::string plan_table(const sim::ScenarioPlan& plan, const plan::LayerCosts& costs);

}  // namespace pipewright::cli
