#pragma once

// What is predicted of runs, one by one: the time of an iteration, and what memory the ranks need.
// What a run says and nobody here can predict is refused with its reason, for the time and the
// memory by themselves.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/models/megatron/megatron_memory.hpp"
#include "pipewright/search/calibration/calibration.hpp"

namespace pipewright::search {

struct RankForecast {
  double peak_bytes = 0;
  std::optional<double> allocated_bytes{};  // between two iterations, where that is counted
  std::vector<models::Holder> at_peak{};    // by name, likewise
};

struct Forecast {
  std::optional<PredictedRun> time{};
  std::string time_refused{};
  std::vector<RankForecast> ranks{};  // of a pipeline
  std::size_t read = 0;               // the rank whose memory is meant: of the run, or the fullest
  std::string memory_refused{};
};

/// Why the time of such a run cannot be predicted on this cluster; empty: it can be.
std::string time_refusal(const plan::Cluster& cluster, const models::MeasuredRun& run);

std::vector<Forecast> forecast(const Calibration& calibration,
                               const std::vector<models::MeasuredRun>& runs);

/// What the runs would be predicted as by halves that do not hold them: split at random, each half
/// is predicted from the other. By the number of the split, then in the order of the runs.
std::vector<std::vector<Forecast>> forecast_across_halves(
    const plan::Cluster& cluster, const std::vector<models::MeasuredRun>& runs, int splits);

}  // namespace pipewright::search
