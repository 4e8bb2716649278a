#pragma once

// The native engine for transfers that share links: while they overlap on a link, they share its
// bandwidth max-min fairly. docs/contention.md describes the rules, which are those of the second
// engine (simgrid.hpp).

#include "pipewright/sim/structure/durations.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

/// Returns the times of all events. All `costs.replicas` pipelines run concurrently and meet in the
/// network; the events are those of pipeline 0, the iteration is the longest of all. Costs must be
/// usable (`require_usable`).
Times simulate_shared_links(const Structure& structure, const StepCosts& costs,
                            DeviceTimes device_times = DeviceTimes::Slowest);

}  // namespace pipewright::sim
