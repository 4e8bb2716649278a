#pragma once

// Builds a V-shaped schedule wave by wave, as ZB-V does (Qi et al., ICLR 2024, section 6).

#include <optional>

#include "v_shape.hpp"

namespace pipewright::plan {

/// Flags that allow a weight gradient to delay a forward, or an input gradient on its way down, if
/// idling instead would make the rank the one with the most idle time.
struct AllowedDelays {
  bool of_forwards;
  bool of_way_down;
};

/// A schedule built as ZB-V, and the idle time of each rank between its first and last action.
struct Waves {
  Schedule schedule;
  std::vector<double> idle;
};

/// Builds waves that each have an input gradient and a forward on every rank. Weight gradients fill
/// what would be idle, or make room under the limit of units. Returns nothing if the limit is too
/// tight. `earlier` is the idle time of each rank in an earlier attempt, or empty. A rank that
/// idled less than the worst rank then may now idle longer by that difference.
std::optional<Waves> construct_waves(int ranks, int microbatches, const ScheduleCosts& costs,
                                     int limit, AllowedDelays delays,
                                     const std::vector<double>& earlier);

}  // namespace pipewright::plan
