#pragma once

// Converts a plan to a scenario, the input of all commands.

#include "pipewright/plan/model/transformer_training.hpp"
#include "pipewright/plan/partition/cut.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::search {

/// Returns the scenario of the whole cut, on the cluster with the constants of its times. With the
/// costs of `plan::transformer_costs` for the same cut it has the plan's figures.
plan::Scenario scenario_of(const plan::Cluster& cluster, const plan::TransformerTraining& training,
                           const plan::Cut& cut);

}  // namespace pipewright::search
