#pragma once

// Quality of predictions: their errors, whether they find the fastest plan, and whether they rank
// plans correctly.

#include <optional>
#include <vector>

#include "pipewright/models/measured/measured_run.hpp"
#include "pipewright/plan/json/json.hpp"

namespace pipewright::search {

struct RunError {
  const models::MeasuredRun* run = nullptr;
  double predicted_s = 0;
  double measured_s = 0;
  /// Returns predicted over measured, minus 1.
  double error() const { return predicted_s / measured_s - 1; }
};

/// Errors over all runs and within groups. The runs of a group have one model, one number of GPUs
/// and one global batch; a group has four runs or more. `regret` and `spearman` are means over
/// groups, empty without a group.
struct PredictionError {
  int rows = 0;
  double mean = 0;
  double median = 0;
  double p90 = 0;
  double worst = 0;
  int groups = 0;
  std::optional<double> regret;    // how much longer the plan that is predicted to be fastest takes
                                   // than the fastest one
  std::optional<double> spearman;  // rank correlation
};
PredictionError error_of(const std::vector<RunError>& errors);
plan::Json to_json(const PredictionError& error);

}  // namespace pipewright::search
