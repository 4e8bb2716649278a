#pragma once

// A V-shaped schedule built wave by wave, as ZB-V is (Qi et al., ICLR 2024, section 6).

#include <optional>

#include "v_shape.hpp"

namespace pipewright::plan {

/// Whether a weight gradient may delay a forward, or an input gradient on its way down, where
/// waiting idle instead would make the rank the worst.
struct AllowedDelays {
  bool of_forwards;
  bool of_way_down;
};

/// The construction of ZB-V, and how long each rank idles in it between its first and last action.
struct Waves {
  Schedule schedule;
  std::vector<double> idle;
};

/// One wave after the other of an input gradient and a forward on every rank; weight gradients fill
/// what would be idle, or make room under the limit of units. Nothing where the limit is too tight.
/// `earlier` is the idle time of each rank in an earlier attempt, or empty: a rank that idled less
/// than the worst then may idle as much longer now.
std::optional<Waves> construct_waves(int ranks, int microbatches, const ScheduleCosts& costs,
                                     int limit, AllowedDelays delays,
                                     const std::vector<double>& earlier);

}  // namespace pipewright::plan
