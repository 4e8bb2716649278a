#pragma once

// The better one of a V-shaped schedule and what can be made of it for given costs.

#include "v_shape.hpp"

namespace pipewright::plan {

/// A schedule within the limits that is no longer than the given one under these costs and ends no
/// later: the given order with its idle time filled, or a greedy one.
Schedule improved(Schedule schedule, const ScheduleCosts& costs, const std::vector<Kept>& limits);

}  // namespace pipewright::plan
