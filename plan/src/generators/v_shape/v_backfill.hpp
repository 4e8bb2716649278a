#pragma once

// Fills the idle time of a V-shaped schedule with later work.

#include "v_shape.hpp"

namespace pipewright::plan {

/// Moves actions into earlier idle time if this delays nothing and keeps each rank within its
/// limit. These are mostly weight gradients, under costs that the order was not made for. No action
/// ends later than before.
Schedule backfill(Schedule schedule, const ScheduleCosts& costs, const std::vector<Kept>& limits);

}  // namespace pipewright::plan
