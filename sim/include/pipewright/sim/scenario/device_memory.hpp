#pragma once

// The memory that the devices of a scenario's ranks need. Every command shows this figure and
// decides by it whether a plan fits.

#include <vector>

#include "pipewright/models/allocator/device_memory.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/sim/memory/memory.hpp"
#include "pipewright/sim/scenario/scenario_plan.hpp"

namespace pipewright::sim {

/// By rank of the pipeline. Of transformers whose costs are worked out from sizes the allocator is
/// replayed. Elsewhere a GPU has what its tensors take at once, by `peaks`, its context and
/// communicators, and `left_out` says why fragmentation is not known. A CPU has its tensors.
std::vector<models::DeviceMemory> device_memory(const plan::Scenario& scenario,
                                                const plan::LayerCosts& costs,
                                                const ScenarioPlan& plan,
                                                const std::vector<MemoryPeak>& peaks);

/// The sum for each rank.
std::vector<plan::Bytes> needs_of(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                                  const ScenarioPlan& plan, const std::vector<MemoryPeak>& peaks);

}  // namespace pipewright::sim
