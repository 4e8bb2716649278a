#pragma once

// The memory that the GPUs of measured runs need. It follows from sizes alone; the only calibrated
// input is the recomputation that runs are assumed to use.

#include <optional>
#include <vector>

#include "pipewright/models/allocator/device_memory.hpp"
#include "pipewright/search/calibration/forecast.hpp"

namespace pipewright::search {

/// Returns the memory of one run, on the rank that its forecast is about. A run that records the
/// arguments of Megatron-LM has the peak of its forecast, which accounts for more options than the
/// allocator's replay.
models::DeviceMemory memory_of_run(const models::MeasuredRun& run, const plan::Cut& cut,
                                   const Forecast& forecast);

/// Returns the memory of each run; empty if its forecast has none.
std::vector<std::optional<models::DeviceMemory>> memory_of_runs(
    const Calibration& calibration, const std::vector<models::MeasuredRun>& runs,
    const std::vector<Forecast>& forecasts);

}  // namespace pipewright::search
