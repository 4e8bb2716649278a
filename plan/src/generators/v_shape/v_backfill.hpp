#pragma once

// Idle time of a V-shaped schedule is filled with work that may move there.

#include "v_shape.hpp"

namespace pipewright::plan {

/// Moves actions into the idle time before them, where they delay nothing and stay within what each
/// rank may keep: weight gradients mostly, under costs that the order was not made for. No action
/// ends later than before.
Schedule backfill(Schedule schedule, const ScheduleCosts& costs, const std::vector<Kept>& limits);

}  // namespace pipewright::plan
