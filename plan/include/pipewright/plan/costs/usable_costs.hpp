#pragma once

// Validation of measured or handwritten costs before a prediction.

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/partition/partition.hpp"

namespace pipewright::plan {

/// Throws InputError that lists all costs that make a prediction impossible: a negative or
/// non-finite time or size of a layer, or a stage without forward time or, if `training`, without
/// backward time.
void require_usable(const LayerCosts& costs, const Partition& partition, bool training);

}  // namespace pipewright::plan
