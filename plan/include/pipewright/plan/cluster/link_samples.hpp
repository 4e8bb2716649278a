#pragma once

// Measurements of one kind of link.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/cluster/link_fit.hpp"

namespace pipewright::plan {

/// Samples by ascending size.
struct LinkSeries {
  std::vector<LinkSample> samples;
  std::string ended;  // why no larger sizes were measured; empty: all were
  friend bool operator==(const LinkSeries&, const LinkSeries&) = default;
};

/// Times and overheads of one pair's transfers while the ranks compute, as in training.
struct ComputingSeries {
  LinkSeries arrival;   // one way, while the sender keeps computing
  LinkSeries sender;    // for how long a transfer keeps the sender from computing
  LinkSeries receiver;  // likewise, for a receiver that computes at that time
  LinkSeries sum;       // likewise, for each rank of an all-reduce over 2 ranks
  friend bool operator==(const ComputingSeries&, const ComputingSeries&) = default;
};

/// All measured series of one kind of link.
struct LinkSamples {
  std::string over;  // transport: in process, Gloo or NCCL
  bool between_nodes = false;
  int most_pairs = 0;  // number of concurrent pairs that have enough cores; 0: unlimited
  LinkSeries one_way;  // one pair, half of a round trip, while no rank computes
  std::optional<ComputingSeries> computing{};
  LinkSeries both_ways;             // the same pair, in both directions at once
  std::vector<LinkSeries> at_once;  // 2, 3, … pairs in the same direction, until the last is done
  std::vector<LinkSeries> sums;     // all-reduces over 2, 3, … ranks
  /// Tensor-parallel all-reduces in the middle of an action, over 2, 3, … ranks. They exclude the
  /// additions, which count as the ranks' own compute.
  std::vector<LinkSeries> tensor_parallel_sums{};
  /// Time that such an all-reduce over 2 ranks adds to a longer concurrent computation.
  LinkSeries tensor_parallel_sums_during_compute{};
  friend bool operator==(const LinkSamples&, const LinkSamples&) = default;
};

}  // namespace pipewright::plan
