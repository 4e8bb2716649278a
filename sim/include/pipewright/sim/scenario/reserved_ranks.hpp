#pragma once

// What LibTorch's allocator would reserve on the ranks of a scenario, by the one rule of
// plan/allocator.

#include <vector>

#include "pipewright/models/allocator/memory_verdict.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/sim/scenario/scenario_plan.hpp"

namespace pipewright::sim {

/// By rank of the pipeline. Refused are all but transformers whose costs are worked out from sizes,
/// as a cluster's fused kernels have them: of those alone the tensors are known one by one.
std::vector<models::ReservedMemory> reserved_ranks(const plan::Scenario& scenario,
                                                   const plan::LayerCosts& costs,
                                                   const ScenarioPlan& plan);

}  // namespace pipewright::sim
