#pragma once

// How good predictions of runs are: how far off, whether they find the best plan, whether they put
// plans in their order.

#include <optional>
#include <vector>

#include "pipewright/models/measured/measured_run.hpp"
#include "pipewright/plan/json/json.hpp"

namespace pipewright::search {

struct RunError {
  const models::MeasuredRun* run = nullptr;
  double predicted_s = 0;
  double measured_s = 0;
  /// Predicted over measured, less 1.
  double error() const { return predicted_s / measured_s - 1; }
};

/// Groups have one model, one number of GPUs and one global batch, and four runs or more. Means
/// over groups; nothing without a group.
struct PredictionError {
  int rows = 0;
  double mean = 0;
  double median = 0;
  double p90 = 0;
  double worst = 0;
  int groups = 0;
  std::optional<double> regret;    // how much longer the plan that is predicted best takes
  std::optional<double> spearman;  // rank correlation
};
PredictionError error_of(const std::vector<RunError>& errors);
plan::Json to_json(const PredictionError& error);

}  // namespace pipewright::search
