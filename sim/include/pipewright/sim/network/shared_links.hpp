#pragma once

// The native engine where transfers share links: as long as they overlap on one, they share its
// bandwidth max-min fairly. docs/contention.md tells the rules, which are those of the second
// engine (simgrid.hpp).

#include "pipewright/sim/structure/durations.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

/// When everything ran. All `costs.replicas` pipelines run side by side and meet in the network;
/// the events are those of pipeline 0, the iteration is the longest of all. Costs are usable
/// (`require_usable`).
Times simulate_shared_links(const Structure& structure, const StepCosts& costs,
                            DeviceTimes device_times = DeviceTimes::Slowest);

}  // namespace pipewright::sim
