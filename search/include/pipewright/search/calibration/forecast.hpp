#pragma once

// Predicts each run: the time of an iteration, and the memory that the ranks need. A run that
// cannot be predicted is rejected with the reason, separately for its time and its memory.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/models/megatron/megatron_memory.hpp"
#include "pipewright/search/calibration/calibration.hpp"

namespace pipewright::search {

struct RankForecast {
  double peak_bytes = 0;
  std::optional<double> allocated_bytes{};  // between two iterations, if that is counted
  std::vector<models::Holder> at_peak{};    // by name, likewise
};

struct Forecast {
  std::optional<PredictedRun> time{};
  std::string time_refused{};
  std::vector<RankForecast> ranks{};  // of one pipeline
  std::size_t read = 0;               // the rank whose memory is reported: named by the run, or the
                                      // fullest
  std::string memory_refused{};
};

/// Returns why the time of such a run cannot be predicted on this cluster; empty: it can.
std::string time_refusal(const plan::Cluster& cluster, const models::MeasuredRun& run);

std::vector<Forecast> forecast(const Calibration& calibration,
                               const std::vector<models::MeasuredRun>& runs);

/// Cross-validates the predictions: the runs are split at random into halves, and each half is
/// predicted from the other. Results are by the number of the split, then in the order of the runs.
std::vector<std::vector<Forecast>> forecast_across_halves(
    const plan::Cluster& cluster, const std::vector<models::MeasuredRun>& runs, int splits);

}  // namespace pipewright::search
