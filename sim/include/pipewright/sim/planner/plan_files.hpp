#pragma once

// A plan as others take it: a scenario with its layers' costs, and Megatron-LM's arguments.

#include <string>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/model/transformer_training.hpp"
#include "pipewright/plan/partition/cut.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::sim {

/// A rank of the scenario is all devices that share a stage: what tensor, data and context sizes
/// cost lies in the costs of the layers and of the optimizer's step, not in replicas.
plan::Scenario scenario_of(const plan::Cluster& cluster, const plan::TransformerTraining& training,
                           const plan::Cut& cut);

/// The times of the scenario's layers: with them `simulate` gives the plan's iteration. Memory is
/// not in them: a rank is several devices, and what each holds is in `account_of`.
plan::LayerCosts layer_costs_of(const plan::Cluster& cluster,
                                const plan::TransformerTraining& training, const plan::Cut& cut);

/// The arguments that say the sizes and the cut: `--tensor-model-parallel-size 8 …`. Empty for
/// schedules that Megatron-LM does not run.
std::string megatron_arguments(const plan::TransformerTraining& training, const plan::Cut& cut);

}  // namespace pipewright::sim
