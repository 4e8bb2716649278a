#pragma once

// From costs to a plan and its prediction.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/layer_costs.hpp"
#include "pipewright/plan/partition.hpp"
#include "pipewright/plan/scenario.hpp"
#include "pipewright/plan/schedule.hpp"
#include "pipewright/plan/stage_costs.hpp"
#include "pipewright/plan/timeline.hpp"

namespace pipewright::cli {

struct Plan {
  plan::Partition partition;
  plan::Schedule schedule;
  plan::Program program;
  std::vector<plan::StageCost> costs;  // by stage
  plan::Timeline predicted;
};

/// The plan cannot run as asked: a deadlock, or over memory. Exit code 1.
class Infeasible : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What each layer weighs by method (one of plan::partition_methods): its parameter bytes, or else
/// its time, the loss with the last layer.
std::vector<double> layer_weights(const std::string& method, const plan::LayerCosts& costs);

/// Boundaries of `parts` parts: the weights balanced, or for "uniform" the layers counted.
std::vector<int> boundaries_by(const std::string& method, const std::vector<double>& weights,
                               int parts);

/// Partition, schedule, Program and prediction. Throws Infeasible.
Plan make_plan(const plan::Scenario& scenario, const plan::LayerCosts& costs);

/// What to say when ranks are more than cores; else nothing.
std::string core_warning(const plan::Scenario& scenario);

/// The plan in a few lines: stages with their layers, the schedule's head.
std::string plan_table(const Plan& plan, const plan::LayerCosts& costs);

}  // namespace pipewright::cli
