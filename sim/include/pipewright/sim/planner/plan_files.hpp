#pragma once

// A plan as others take it: a scenario, and Megatron-LM's arguments.

#include <string>

#include "pipewright/plan/model/transformer_training.hpp"
#include "pipewright/plan/partition/cut.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::sim {

/// The whole cut, on the cluster with the constants that its times are from. With the costs of
/// `plan::transformer_costs` for the same cut it has the plan's figures.
plan::Scenario scenario_of(const plan::Cluster& cluster, const plan::TransformerTraining& training,
                           const plan::Cut& cut);

/// The arguments that say the sizes and the cut: `--tensor-model-parallel-size 8 …`. Empty for
/// schedules that Megatron-LM does not run.
std::string megatron_arguments(const plan::TransformerTraining& training, const plan::Cut& cut);

}  // namespace pipewright::sim
