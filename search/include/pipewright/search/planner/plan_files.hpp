#pragma once

// A plan as all commands take it: a scenario.

#include "pipewright/plan/model/transformer_training.hpp"
#include "pipewright/plan/partition/cut.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::search {

/// The whole cut, on the cluster with the constants that its times are from. With the costs of
/// `plan::transformer_costs` for the same cut it has the plan's figures.
plan::Scenario scenario_of(const plan::Cluster& cluster, const plan::TransformerTraining& training,
                           const plan::Cut& cut);

}  // namespace pipewright::search
