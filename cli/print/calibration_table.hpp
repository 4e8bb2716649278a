#pragma once

// What `pipewright calibrate` has found out, for people and for programs.

#include <string>
#include <vector>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/sim/calibration/calibration.hpp"

namespace pipewright::cli {

struct CalibrationReport {
  sim::Calibration calibration;
  int learnt = 0;                 // runs
  bool learnt_from_them = false;  // whether the predicted runs are those
  bool physics_only = false;
  std::vector<std::string> ignored;  // columns of the runs
  std::vector<plan::MeasuredRun> runs;
  std::vector<sim::PredictedRun> predicted;
  /// By split; of the runs that were learnt from.
  std::vector<plan::MeasuredRun> learnt_runs;
  std::vector<std::vector<sim::PredictedRun>> across_halves;
};

std::string calibration_table(const CalibrationReport& report);
plan::Json to_json(const CalibrationReport& report);

}  // namespace pipewright::cli
