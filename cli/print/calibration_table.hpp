#pragma once

// Prints the results of `pipewright calibrate` as text and as JSON.

#include <string>
#include <vector>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/search/calibration/forecast.hpp"
#include "pipewright/search/calibration/run_memory.hpp"

namespace pipewright::cli {

/// A row, or a part of it, that cannot be predicted or learned from.
struct Refusal {
  std::string id;
  int line = 0;
  std::string part;  // "row", "time", "memory" or "learning"
  std::string reason;
};

struct CalibrationReport {
  search::Calibration calibration;
  int learnt = 0;                 // runs
  bool learnt_from_them = false;  // the predicted runs are those that were learned from
  bool physics_only = false;
  std::vector<std::string> ignored;  // columns of the runs
  std::vector<models::MeasuredRun> runs;
  std::vector<search::Forecast> forecasts;                  // of each run
  std::vector<std::optional<models::DeviceMemory>> memory;  // of each run; empty: not requested
  std::vector<Refusal> refused;
  /// By split, for the runs that were learned from.
  std::vector<models::MeasuredRun> learnt_runs;
  std::vector<std::vector<search::Forecast>> across_halves;
};

std::string calibration_table(const CalibrationReport& report);
plan::Json to_json(const CalibrationReport& report);

}  // namespace pipewright::cli
