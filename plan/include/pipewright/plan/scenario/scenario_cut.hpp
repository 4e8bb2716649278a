#pragma once

// The same cut of a training, as a scenario says it and as the analytic times and memory take it;
// and where on a cluster the ranks lie that it puts together.

#include <vector>

#include "pipewright/plan/cluster/shard_times.hpp"
#include "pipewright/plan/partition/cut.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::plan {

/// What a shard has of layers that were measured whole, where the scenario has several: times,
/// parameters and what is kept are shared out evenly, and each layer sums what it makes, twice
/// where it can be run again (a transformer's block), else once. Norms are not shared out in truth.
/// Of the experts of a mixture a rank has its part, and meets as many tokens as were measured, with
/// two exchanges of them: it is the busiest of those who share them out, for which the others wait.
LayerCosts costs_of_shards(const Scenario& scenario, LayerCosts costs);

/// How a scenario cuts its training. Layers of stages are left out: the partition says them.
Cut cut_of(const Scenario& scenario);

/// Samples of an iteration.
int batch_of(const Scenario& scenario);

/// The ranks of the job that stand for a rank of a pipeline: each of them is a copy, whose shards
/// lie one behind the other.
struct StagePlaces {
  int copies = 1;  // replicas · context
  int shards = 1;
  std::vector<int> devices{};  // by rank of the pipeline, copy and shard, the last the fastest
};
StagePlaces stage_places(const Pipeline& pipeline);

/// The scenario's cluster, with the memory of each rank of a pipeline where nodes are of several
/// kinds: the least of the devices that stand for it.
Cluster cluster_of_ranks(const Scenario& scenario);

/// Where the ranks lie that share out the layers of the first stage.
ShardPlaces shard_places(const Cluster& cluster, const Pipeline& pipeline);

}  // namespace pipewright::plan
