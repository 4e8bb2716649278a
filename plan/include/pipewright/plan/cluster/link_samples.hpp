#pragma once

// What was measured of one kind of link.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/cluster/link_fit.hpp"

namespace pipewright::plan {

/// By rising size.
struct LinkSeries {
  std::vector<LinkSample> samples;
  std::string ended;  // why there is nothing larger; empty: it is all that was asked for
  friend bool operator==(const LinkSeries&, const LinkSeries&) = default;
};

/// What transfers of one pair take and cost while ranks compute, as in training.
struct ComputingSeries {
  LinkSeries arrival;   // one way, while the sender computes on
  LinkSeries sender;    // for how long that keeps it from computing
  LinkSeries receiver;  // the same of a receiver that computes meanwhile
  LinkSeries sum;       // the same of each rank of a sum over 2
  friend bool operator==(const ComputingSeries&, const ComputingSeries&) = default;
};

struct LinkSamples {
  std::string over;  // what carries the bytes: in process, Gloo, NCCL
  bool between_nodes = false;
  int most_pairs = 0;  // as many at once as ranks that train have cores for; 0: any number
  LinkSeries one_way;  // of one pair: half of the way there and back, no rank computes
  std::optional<ComputingSeries> computing{};
  LinkSeries both_ways;             // of the same pair, both at once
  std::vector<LinkSeries> at_once;  // of 2, 3, … pairs, all the same way, until the last is done
  std::vector<LinkSeries> sums;     // over 2, 3, … ranks, which all get them
  /// Likewise, as the shards of a layer sum in the middle of an action: without the additions,
  /// which are theirs to compute.
  std::vector<LinkSeries> shard_sums{};
  /// What one over 2 ranks adds to compute beside it that takes longer.
  LinkSeries shard_sums_beside{};
  friend bool operator==(const LinkSamples&, const LinkSamples&) = default;
};

}  // namespace pipewright::plan
