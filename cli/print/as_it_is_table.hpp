#pragma once

// What `pipewright plan --as-is` says of a run, for people and for programs.

#include <string>
#include <vector>

#include "pipewright/models/trainers/megatron_arguments.hpp"
#include "pipewright/plan/cluster/cluster.hpp"
#include "pipewright/plan/json/json.hpp"
#include "pipewright/search/calibration/forecast.hpp"
#include "pipewright/search/calibration/run_account.hpp"
#include "pipewright/search/calibration/run_memory.hpp"

namespace pipewright::cli {

/// What of a run is not predicted, and why.
struct AsItIsRefusal {
  std::string part;    // "time", "memory" or "option"
  std::string option;  // of Megatron; empty: a size
  std::string reason;
};

struct AsItIs {
  const plan::Cluster& cluster;
  const models::DescribedTransformer& told;
  const models::MeasuredRun& run;
  const search::Forecast& forecast;
  std::vector<search::RankTime> ranks{};
  std::vector<AsItIsRefusal> refused{};

  std::optional<models::DeviceMemory> needs{};  // of the fullest rank; nothing: memory is refused

  /// Of the smallest device; 0: not known.
  plan::Bytes memory() const { return least_memory(cluster); }
  bool fits() const { return !needs || memory() == plan::Bytes{} || needs->total() <= memory(); }
};

std::string as_it_is_table(const AsItIs& plan);
plan::Json to_json(const AsItIs& plan);

}  // namespace pipewright::cli
