#pragma once

// The second engine: the same Program with the same durations, whose transfers are flows that
// SimGrid moves. It gives the native engine's times. docs/contention.md tells the rules.

#include <filesystem>

#include "pipewright/sim/structure/durations.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

/// Whether this build has the engine: SimGrid is optional.
bool built_with_simgrid();

/// When everything ran. All `costs.replicas` pipelines run side by side and meet in the network;
/// the events are those of pipeline 0, the iteration is the longest of all. Jitter draws the same
/// numbers in each pipeline.
///
/// The network is that of `platform_file`, a SimGrid XML platform whose hosts are the devices in
/// the order of the file, and which says what transfers and collectives take; or, without a file,
/// of `costs.cluster`. Throws InputError for costs that cannot be used or that SimGrid cannot
/// express (ranks that slow each other down), for a platform that cannot be read, has too few hosts
/// or lacks a route between two that talk; and when built without SimGrid.
Times simulate_on_simgrid(const Structure& structure, const StepCosts& costs,
                          const std::filesystem::path& platform_file = {},
                          DeviceTimes device_times = DeviceTimes::Slowest);

}  // namespace pipewright::sim
