#pragma once

// Improves a V-shaped schedule for given costs.

#include "v_shape.hpp"

namespace pipewright::plan {

/// Returns a schedule within the limits that, under these costs, has no longer makespan than the
/// given one and ends no later. It is the given order with its idle time filled, or a greedy order.
Schedule improved(Schedule schedule, const ScheduleCosts& costs, const std::vector<Kept>& limits);

}  // namespace pipewright::plan
