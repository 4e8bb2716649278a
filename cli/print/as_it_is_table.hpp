#pragma once

// What `pipewright plan --as-is` says of a run, for people and for programs.

#include <string>
#include <vector>

#include "pipewright/plan/cluster/cluster.hpp"
#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/trainers/megatron_arguments.hpp"
#include "pipewright/sim/calibration/forecast.hpp"
#include "pipewright/sim/calibration/run_account.hpp"

namespace pipewright::cli {

/// What of a run is not predicted, and why.
struct AsItIsRefusal {
  std::string part;    // "time", "memory" or "option"
  std::string option;  // of Megatron; empty: a size
  std::string reason;
};

struct AsItIs {
  const plan::Cluster& cluster;
  const plan::DescribedTransformer& told;
  const plan::MeasuredRun& run;
  const sim::Forecast& forecast;
  std::vector<sim::RankTime> ranks{};
  std::vector<AsItIsRefusal> refused{};

  /// Bytes of the fullest rank; 0 where memory is refused.
  double peak() const;
  /// Bytes of the smallest device; 0: not known.
  double memory() const;
  bool fits() const { return memory() <= 0 || peak() <= memory(); }
};

std::string as_it_is_table(const AsItIs& plan);
plan::Json to_json(const AsItIs& plan);

}  // namespace pipewright::cli
