#pragma once

// Who works with whom when pipelines run side by side. A grid is a topology with the axes pipe and
// data: each index along data is a pipeline of its own on a replica of the model. An axis model
// cuts every stage into slices; further axes only multiply the groups. The groups, and their order,
// are those of DeepSpeed's PipelineParallelGrid.

#include "pipewright/plan/cluster/topology.hpp"

namespace pipewright::plan {

class Grid {
 public:
  /// Throws InputError when the axis pipe or data is missing.
  explicit Grid(Topology topology);

  const Topology& topology() const { return topology_; }
  int pipe_size() const { return topology_.length_of("pipe"); }
  int data_size() const { return topology_.length_of("data"); }
  int model_size() const;  // 1 without the axis model

  int stage_of(int rank) const { return topology_.coordinate_of(rank, "pipe"); }
  int data_index_of(int rank) const { return topology_.coordinate_of(rank, "data"); }
  int model_index_of(int rank) const;  // 0 without the axis model
  bool is_first_stage(int rank) const { return stage_of(rank) == 0; }
  bool is_last_stage(int rank) const { return stage_of(rank) == pipe_size() - 1; }
  /// The rank that has `stage` and is like `rank` along every other axis.
  int stage_to_global(int rank, int stage) const;
  /// The same, but along these axes elsewhere: {{"data", 1}} in the second pipeline. Throws
  /// InputError for an axis that does not exist, pipe, or an index outside its axis.
  int stage_to_global(int rank, int stage, const std::vector<AxisIndex>& elsewhere) const;
  /// Of all ranks that together hold one replica of the model, which this is, and how many there
  /// are: DeepSpeed's get_model_parallel_rank and get_model_parallel_world_size.
  int model_parallel_rank(int rank) const;
  int model_parallel_size() const { return topology_.rank_count() / data_size(); }

  /// The stages of one pipeline, in order.
  RankGroups pipe_groups() const { return topology_.groups_along("pipe"); }
  /// Ranks that hold the same weights and add up their gradients.
  RankGroups data_groups() const { return topology_.groups_along("data"); }
  /// The slices of one stage; without the axis model every rank is alone.
  RankGroups model_groups() const;
  /// Ranks that together hold one replica of the model: all ranks of one data index.
  RankGroups replica_groups() const;
  /// Each rank with the one of the next stage; after the last comes the first.
  RankGroups p2p_groups() const;
  /// Every group in one order: communicators come about only if all ranks create them alike.
  RankGroups groups_in_creation_order() const;

  friend bool operator==(const Grid&, const Grid&) = default;

 private:
  Topology topology_;
};

/// Whether the axes are those of a grid.
bool is_grid(const Topology& topology);

/// Deals the prime factors, the smallest first, to pipe and data in turn: 24 = 2·2·2·3 becomes
/// pipe 2·2 and data 2·3.
Topology default_grid_topology(int ranks);

}  // namespace pipewright::plan
