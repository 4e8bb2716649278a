#pragma once

// The memory that the GPUs of measured runs need. It follows from sizes alone; the only calibrated
// input is what runs are assumed to recompute.

#include <optional>
#include <vector>

#include "pipewright/models/allocator/device_memory.hpp"
#include "pipewright/search/calibration/forecast.hpp"

namespace pipewright::search {

/// The memory of one run, on the rank that its forecast is about. A run that says how Megatron-LM
/// was started has the peak of its forecast, which counts more options than the replay knows.
models::DeviceMemory memory_of_run(const models::MeasuredRun& run, const plan::Cut& cut,
                                   const Forecast& forecast);

/// The memory of each run; empty if its forecast has none.
std::vector<std::optional<models::DeviceMemory>> memory_of_runs(
    const Calibration& calibration, const std::vector<models::MeasuredRun>& runs,
    const std::vector<Forecast>& forecasts);

}  // namespace pipewright::search
