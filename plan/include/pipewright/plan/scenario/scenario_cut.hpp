#pragma once

// Conversions from a scenario to the inputs of the analytic times and memory: its parallelism as a
// Cut, and the placement of its ranks on the cluster.

#include <vector>

#include "pipewright/plan/cluster/shard_times.hpp"
#include "pipewright/plan/partition/cut.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::plan {

/// Returns the costs of one tensor- and expert-parallel rank, given the costs of whole layers.
/// Times, parameters and saved bytes are divided evenly, although norms are in truth not
/// partitioned. Each layer makes two all-reduces of its output if it is checkpointable (a
/// transformer block), else one. With expert parallelism, a rank has its part of the experts and as
/// many tokens as were measured, with two all-to-alls. The costs are those of the busiest rank, for
/// which the others wait.
LayerCosts costs_of_shards(const Scenario& scenario, LayerCosts costs);

/// Returns the scenario's parallelism. The number of layers per stage is left empty; the partition
/// gives it.
Cut cut_of(const Scenario& scenario);

/// Returns the number of samples per iteration.
int batch_of(const Scenario& scenario);

/// The ranks of the job that correspond to one rank of a pipeline: data- and context-parallel
/// replicas, and the consecutive tensor-parallel ranks of each.
struct StagePlaces {
  int copies = 1;  // replicas · context
  int shards = 1;
  /// By rank of the pipeline, replica and tensor-parallel rank, the last the fastest.
  std::vector<int> devices{};
};
StagePlaces stage_places(const Pipeline& pipeline);

/// Returns the scenario's cluster. If it has several kinds of nodes, they are replaced by the speed
/// and memory of each rank of a pipeline: the minimum over its devices.
Cluster cluster_of_ranks(const Scenario& scenario);

/// Returns the placement of the tensor-, context- and expert-parallel groups of the first stage.
ShardPlaces shard_places(const Cluster& cluster, const Pipeline& pipeline);

}  // namespace pipewright::plan
