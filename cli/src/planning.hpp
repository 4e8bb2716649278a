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

/// A model file, or a scenario that names one.
plan::Model read_model(const std::string& file);

/// What the items of each part weigh together.
std::vector<double> sums_of(const std::vector<double>& weights, const std::vector<int>& boundaries);

/// Boundaries of `parts` parts: the weights balanced, or for "uniform" the layers counted.
std::vector<int> boundaries_by(const std::string& method, const std::vector<double>& weights,
                               int parts);

/// Refuses, before anything is measured, sizes that the schedule does not take (InputError) and
/// communicators under which it deadlocks (Infeasible). Returns the Program that equal times give.
plan::Program sound_program(const plan::Scenario& scenario);

/// Partition, schedule, Program and prediction. Throws plan::Infeasible.
Plan make_plan(const plan::Scenario& scenario, const plan::LayerCosts& costs);

/// What to say when ranks are more than cores; else nothing.
std::string core_warning(const plan::Scenario& scenario);

/// The plan in a few lines: stages with their layers, the schedule's head.
std::string plan_table(const Plan& plan, const plan::LayerCosts& costs);

}  // namespace pipewright::cli
