#pragma once

// What a runtime's messages take of the ranks of a cluster.

#include "pipewright/plan/cluster/cluster.hpp"
#include "pipewright/plan/costs/runtime_cost.hpp"

namespace pipewright::plan {

/// For how long a transfer keeps its ends from computing is this runtime's, on every link.
Cluster with_messages(Cluster cluster, const RuntimeCost& runtime);

}  // namespace pipewright::plan
