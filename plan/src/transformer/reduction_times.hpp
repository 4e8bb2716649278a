#pragma once

// How long sums over devices take: within a node as its table says, or a ring over the link;
// between nodes as a ring over what a node has.

#include "pipewright/plan/transformer/transformer_times.hpp"

namespace pipewright::plan {

struct SumTime {
  double table_s = 0;
  double bulk_s = 0;
  double network_s = 0;
};

/// `groups` sums of `ranks` devices each go on at once in a node; `spans` tells whether each of
/// them reaches over several nodes.
SumTime sum_time(const Cluster& cluster, int ranks, double bytes, int groups, bool spans);

}  // namespace pipewright::plan
