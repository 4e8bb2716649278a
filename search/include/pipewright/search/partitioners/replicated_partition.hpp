#pragma once

// PipeDream's partition (Narayanan et al., SOSP 2019): partitions a graph of operators into stages
// and assigns each stage one or more machines, which share its minibatches and average its
// gradients. The slowest stage is as fast as possible.

#include <string>
#include <vector>

#include "pipewright/search/partitioners/profile_graph.hpp"

namespace pipewright::search {

/// Machines joined by links of one speed. Above the first level a machine is a group: all machines
/// of the level below.
struct MachineLevel {
  int machines = 1;
  double bandwidth_per_s = 1e9;  // bytes
};

struct ReplicationOptions {
  std::vector<MachineLevel> levels;  // innermost first
  bool straight = false;             // one machine per stage, without replicas
  bool count_transfers = false;      // also balance the time of transfers
};

struct ReplicatedStage {
  std::vector<std::string> nodes;  // ids, in the order of the profile
  int replicas = 1;                // machines of the outermost level
  plan::Seconds time;              // per minibatch, including the averaging of gradients
};

struct ReplicatedPartition {
  plan::Seconds slowest_stage;
  plan::Seconds one_machine;  // the whole graph on one machine
  std::vector<ReplicatedStage> stages;
};

/// Returns the best partition. A stage of compute c and w parameter bytes on r replicas takes (c +
/// 4 (r-1) w / (r bandwidth)) / r per minibatch. At a cut the outputs used after it and their
/// gradients are transferred: 2 bytes / (r bandwidth). The result is exact over all chains of order
/// ideals (sets that hold every predecessor) and all numbers of replicas that use every machine;
/// outer levels use the answer of the level below as the compute of a stage, as PipeDream does.
/// With n ideals and m machines it takes O(n² m²), and O(n³ m²) for inner levels. On one level,
/// without transfers, ideals that differ only in nodes without compute and parameters count once.
/// Throws InputError for a cyclic or an empty graph, no machine, or more than `most_ideals`, and
/// Infeasible if a straight pipeline has fewer possible stages than machines.
ReplicatedPartition replicated_partition(const ProfileGraph& graph,
                                         const ReplicationOptions& options);

inline constexpr int most_ideals = 2000;

}  // namespace pipewright::search
