#pragma once

// Prints the prediction of `pipewright plan --as-is` as text and as JSON.

#include <string>
#include <vector>

#include "pipewright/models/trainers/megatron_arguments.hpp"
#include "pipewright/plan/cluster/cluster.hpp"
#include "pipewright/plan/json/json.hpp"
#include "pipewright/search/calibration/forecast.hpp"
#include "pipewright/search/calibration/run_account.hpp"
#include "pipewright/search/calibration/run_memory.hpp"

namespace pipewright::cli {

/// A part of a run that is not predicted, and the reason.
struct AsItIsRefusal {
  std::string part;    // "time", "memory" or "option"
  std::string option;  // of Megatron; empty: not an option
  std::string reason;
};

struct AsItIs {
  const plan::Cluster& cluster;
  const models::DescribedTransformer& told;
  const models::MeasuredRun& run;
  const search::Forecast& forecast;
  std::vector<search::RankTime> ranks{};
  std::vector<AsItIsRefusal> refused{};

  std::optional<models::DeviceMemory> needs{};  // of the fullest rank; nothing: its memory cannot
                                                // be predicted

  /// Returns the memory of the smallest device; 0: unknown.
  plan::Bytes memory() const { return least_memory(cluster); }
  bool fits() const { return !needs || memory() == plan::Bytes{} || needs->total() <= memory(); }
};

std::string as_it_is_table(const AsItIs& plan);
plan::Json to_json(const AsItIs& plan);

}  // namespace pipewright::cli
