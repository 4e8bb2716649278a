#pragma once

// Load imbalance of a mixture of experts: how unevenly its router spreads tokens over the
// expert-parallel ranks, all of which wait for the one with the most tokens.

#include <cstdint>
#include <vector>

#include "pipewright/plan/costs/layer_costs.hpp"

namespace pipewright::plan {

/// Returns the load imbalance for each number of expert-parallel ranks, from 2 on, that divides the
/// number of experts. `rows` gives the tokens per expert, by microbatch and expert. One all-to-all
/// joins as many microbatches as there are ranks, one from each rank's pipeline; if there are
/// fewer, they are repeated. The result is the mean over all such all-to-alls.
std::vector<ExpertLoad> expert_loads(const std::vector<std::vector<std::int64_t>>& rows);

/// Returns the load of the busiest of `ranks` ranks over their mean; 1 if it was not measured. For
/// a number of ranks that was not measured, it uses the next larger measured one.
double busiest_load(const LayerCost& layer, int ranks);

/// Scales a layer to the busiest of `ranks` ranks: its all-to-all bytes, and the fraction `share`
/// (0 to 1) of its compute time that experts take.
void slow_to_busiest(LayerCost& layer, int ranks, double share);

}  // namespace pipewright::plan
