#pragma once

// What LibTorch's allocator would reserve for runs, and whether they fit on the cluster's devices:
// from sizes alone, so nothing of it is calibrated but what runs are assumed to recompute.

#include <vector>

#include "pipewright/models/allocator/memory_verdict.hpp"
#include "pipewright/search/calibration/forecast.hpp"

namespace pipewright::search {

/// Of one run, on a device of `memory` bytes.
models::ReservedMemory reserved_by(const models::MeasuredRun& run, const plan::Cut& cut,
                                   std::size_t rank, plan::Bytes memory);

/// Of each run, on the rank whose memory its forecast means.
std::vector<models::ReservedMemory> reserved_forecast(const Calibration& calibration,
                                                      const std::vector<models::MeasuredRun>& runs,
                                                      const std::vector<Forecast>& forecasts);

}  // namespace pipewright::search
