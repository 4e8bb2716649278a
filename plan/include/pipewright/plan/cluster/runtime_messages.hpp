#pragma once

// Overheads of a runtime's messages, applied to a cluster.

#include "pipewright/plan/cluster/cluster.hpp"
#include "pipewright/plan/costs/runtime_cost.hpp"

namespace pipewright::plan {

/// Replaces the send and receive overheads of every link with those of this runtime.
Cluster with_messages(Cluster cluster, const RuntimeCost& runtime);

}  // namespace pipewright::plan
