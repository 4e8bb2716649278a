#pragma once

// What `pipewright calibrate` has found out, for people and for programs.

#include <string>
#include <vector>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/search/calibration/forecast.hpp"
#include "pipewright/search/calibration/run_memory.hpp"

namespace pipewright::cli {

/// What a table says and nobody here can predict, or learn from.
struct Refusal {
  std::string id;
  int line = 0;
  std::string part;  // "row", "time", "memory" or "learning"
  std::string reason;
};

struct CalibrationReport {
  search::Calibration calibration;
  int learnt = 0;                 // runs
  bool learnt_from_them = false;  // whether the predicted runs are those
  bool physics_only = false;
  std::vector<std::string> ignored;  // columns of the runs
  std::vector<models::MeasuredRun> runs;
  std::vector<search::Forecast> forecasts;                  // of each of them
  std::vector<std::optional<models::DeviceMemory>> memory;  // likewise; empty: not asked for
  std::vector<Refusal> refused;
  /// By split; of the runs that were learnt from.
  std::vector<models::MeasuredRun> learnt_runs;
  std::vector<std::vector<search::Forecast>> across_halves;
};

std::string calibration_table(const CalibrationReport& report);
plan::Json to_json(const CalibrationReport& report);

}  // namespace pipewright::cli
