#pragma once

// What a cut of a training takes: the figures of the scenario that says it, as whoever simulates
// that scenario gets them.

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

/// Of a scenario with these costs; of one that takes longer than `most_s` seconds the time alone.
/// Throws InputError where it cannot be planned.
PlanFacts facts_of(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                   sim::StructureCache* structures = nullptr,
                   double most_s = std::numeric_limits<double>::infinity());

}  // namespace pipewright::search
