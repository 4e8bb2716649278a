#pragma once

// The figures of a training's cut: those that a simulation of its scenario gives.

#include <limits>
#include <vector>

#include "pipewright/plan/cluster/cluster.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/model/transformer_training.hpp"
#include "pipewright/plan/partition/cut.hpp"
#include "pipewright/sim/scenario/scenario_plan.hpp"

namespace pipewright::search {

struct PlanFacts {
  double iteration_s = 0;
  double bubble = 0;  // mean over ranks, as a fraction of the iteration
  double units_per_s = 0;
  double mfu = 0;
  std::vector<plan::Bytes> peaks{};  // by rank
};

/// Returns the figures of a scenario with these costs; for one that takes longer than `most_s`
/// seconds only the time. Throws InputError if it cannot be planned.
PlanFacts facts_of(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                   sim::StructureCache* structures = nullptr,
                   double most_s = std::numeric_limits<double>::infinity());

}  // namespace pipewright::search
