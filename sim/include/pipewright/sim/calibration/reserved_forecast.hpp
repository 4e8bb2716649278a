#pragma once

// What LibTorch's allocator would reserve for runs, and whether they fit on the cluster's devices:
// from sizes alone, so nothing of it is calibrated but what runs are assumed to recompute.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/allocator/memory_verdict.hpp"
#include "pipewright/sim/calibration/forecast.hpp"

namespace pipewright::sim {

struct ReservedForecast {
  std::optional<plan::MemoryVerdict> verdict{};
  std::string refused{};  // why there is none
};

/// Of each run, on the rank whose memory its forecast means.
std::vector<ReservedForecast> reserved_forecast(const Calibration& calibration,
                                                const std::vector<plan::MeasuredRun>& runs,
                                                const std::vector<Forecast>& forecasts);

}  // namespace pipewright::sim
