#pragma once

// Whether costs that somebody wrote down or measured are such that a prediction can be made of
// them.

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/partition/partition.hpp"

namespace pipewright::plan {

/// Refuses costs that nothing can be predicted from: a layer's time or size that is negative or no
/// number, a whole stage without forward or, if `training`, without backward time. Names them all.
/// Throws InputError.
void require_usable(const LayerCosts& costs, const Partition& partition, bool training);

}  // namespace pipewright::plan
