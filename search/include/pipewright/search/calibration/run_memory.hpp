#pragma once

// What the devices of measured runs must have: from sizes alone, so nothing of it is calibrated but
// what runs are assumed to recompute.

#include <optional>
#include <vector>

#include "pipewright/models/allocator/device_memory.hpp"
#include "pipewright/search/calibration/forecast.hpp"

namespace pipewright::search {

/// Of one run, on the rank whose memory its forecast means. A run that says how Megatron-LM was
/// started has the peak of its forecast, which counts more options than the replay knows.
models::DeviceMemory memory_of_run(const models::MeasuredRun& run, const plan::Cut& cut,
                                   const Forecast& forecast);

/// Of each run; nothing where its forecast has no memory.
std::vector<std::optional<models::DeviceMemory>> memory_of_runs(
    const Calibration& calibration, const std::vector<models::MeasuredRun>& runs,
    const std::vector<Forecast>& forecasts);

}  // namespace pipewright::search
