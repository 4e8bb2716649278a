#pragma once

// The second engine: the same Program with the same durations, whose transfers are flows simulated
// by SimGrid. It gives the native engine's times. docs/contention.md describes the rules.

#include <filesystem>

#include "pipewright/sim/structure/durations.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

/// Returns true if this build has the engine: SimGrid is optional.
bool built_with_simgrid();

/// Returns the times of all events. All `costs.replicas` pipelines run concurrently and meet in the
/// network; the events are those of pipeline 0, the iteration is the longest of all. Jitter samples
/// the same numbers in each pipeline.
///
/// If `platform_file` is given, the network is that SimGrid XML platform, whose hosts are the
/// devices in the order of the file and which decides the time of transfers and collectives;
/// otherwise it is that of `costs.cluster`. Throws InputError for costs that cannot be used or that
/// SimGrid cannot express (ranks that slow each other down); for a platform that cannot be read,
/// has too few hosts or lacks a route between two communicating hosts; and if built without
/// SimGrid.
Times simulate_on_simgrid(const Structure& structure, const StepCosts& costs,
                          const std::filesystem::path& platform_file = {},
                          DeviceTimes device_times = DeviceTimes::Slowest);

}  // namespace pipewright::sim
