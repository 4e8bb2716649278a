#pragma once

// The memory that the devices of a scenario's ranks need. Every command shows this figure and uses
// it to decide whether a plan fits.

#include <vector>

#include "pipewright/models/allocator/device_memory.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/sim/memory/memory.hpp"
#include "pipewright/sim/scenario/scenario_plan.hpp"

namespace pipewright::sim {

/// Returns the memory by rank of the pipeline. For transformers whose costs are computed from
/// sizes, the caching allocator is replayed. Otherwise a GPU needs its tensors' peak (`peaks`), its
/// context and its communicators, and `left_out` says why fragmentation is unknown. A CPU needs its
/// tensors.
std::vector<models::DeviceMemory> device_memory(const plan::Scenario& scenario,
                                                const plan::LayerCosts& costs,
                                                const ScenarioPlan& plan,
                                                const std::vector<MemoryPeak>& peaks);

/// Returns the total for each rank.
std::vector<plan::Bytes> needs_of(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                                  const ScenarioPlan& plan, const std::vector<MemoryPeak>& peaks);

}  // namespace pipewright::sim
