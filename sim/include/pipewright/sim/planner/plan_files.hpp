#pragma once

// A found plan as others take it: a scenario with its layers' costs, and Megatron-LM's arguments.

#include <string>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/sim/planner/plan_search.hpp"

namespace pipewright::sim {

/// A rank of the scenario is all devices that share a stage: what tensor, data and context sizes
/// cost lies in the costs of the layers and of the optimizer's step, not in replicas.
plan::Scenario scenario_of(const plan::Cluster& cluster, const FoundPlan& plan);

/// The times of the scenario's layers: with them `simulate` gives the plan's iteration. Memory is
/// not in them: a rank is several devices, and what each holds is FoundPlan's.
plan::LayerCosts layer_costs_of(const plan::Cluster& cluster, const FoundPlan& plan);

/// Those that cut the model and the batch: `--tensor-model-parallel-size 8 …`. Empty for schedules
/// that Megatron-LM does not run.
std::string megatron_arguments(const plan::TrainingRun& run);

}  // namespace pipewright::sim
