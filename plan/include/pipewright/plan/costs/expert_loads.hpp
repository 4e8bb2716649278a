#pragma once

// How unevenly a mixture's router spreads tokens over the ranks that share out its experts: all of
// them wait for the one with the most.

#include <cstdint>
#include <vector>

#include "pipewright/plan/costs/layer_costs.hpp"

namespace pipewright::plan {

/// From the rows that each expert got of each microbatch, for each number of ranks from 2 on that
/// can share them out: so many microbatches, one of each rank's pipeline, meet in an exchange. Of
/// more exchanges the mean. `rows`: by microbatch and expert; where there are fewer microbatches
/// than ranks, the same again.
std::vector<ExpertLoad> expert_loads(const std::vector<std::vector<std::int64_t>>& rows);

/// What the busiest of so many ranks has over their mean; 1 where nobody measured it. Of another
/// number of ranks than was measured as of the next larger one.
double busiest_load(const LayerCost& layer, int ranks);

/// The layer on the busiest of so many ranks: the part of its times that experts take, and what it
/// exchanges (`share`: 0 to 1, of its compute), as much longer.
void slow_to_busiest(LayerCost& layer, int ranks, double share);

}  // namespace pipewright::plan
