#pragma once

// Process groups of data-parallel pipelines. A grid is a topology with the axes pipe and data: each
// index along data is a pipeline with its own replica of the model. An axis model partitions every
// stage among tensor-parallel ranks; further axes only multiply the groups. The groups and their
// order are those of DeepSpeed's PipelineParallelGrid.

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
  /// Returns the rank of `stage` whose coordinates along all other axes equal those of `rank`.
  int stage_to_global(int rank, int stage) const;
  /// Returns the rank of `stage` with the given indices along some axes, and those of `rank` along
  /// the others: {{"data", 1}} means in the second pipeline. Throws InputError for an unknown axis,
  /// for pipe, or for an index outside its axis.
  int stage_to_global(int rank, int stage, const std::vector<AxisIndex>& elsewhere) const;
  /// Returns the index of a rank among the ranks that together hold one replica of the model; the
  /// next function returns their number. They are DeepSpeed's get_model_parallel_rank and
  /// get_model_parallel_world_size.
  int model_parallel_rank(int rank) const;
  int model_parallel_size() const { return topology_.rank_count() / data_size(); }

  /// The ranks of each pipeline, in the order of stages.
  RankGroups pipe_groups() const { return topology_.groups_along("pipe"); }
  /// Ranks that hold the same weights and all-reduce their gradients.
  RankGroups data_groups() const { return topology_.groups_along("data"); }
  /// The tensor-parallel ranks of each stage; without the axis model each rank is its own group.
  RankGroups model_groups() const;
  /// Ranks that together hold one replica of the model: all ranks of one data index.
  RankGroups replica_groups() const;
  /// Each rank paired with the rank of the next stage; the last stage is paired with the first.
  RankGroups p2p_groups() const;
  /// All groups in one fixed order, because all ranks must create communicators in the same order.
  RankGroups groups_in_creation_order() const;

  friend bool operator==(const Grid&, const Grid&) = default;

 private:
  Topology topology_;
};

/// Returns true if the topology has the axes that a grid needs.
bool is_grid(const Topology& topology);

/// Assigns the prime factors, the smallest first, to pipe and data in turn: 24 = 2·2·2·3 becomes
/// pipe 2·2 and data 2·3.
Topology default_grid_topology(int ranks);

}  // namespace pipewright::plan
