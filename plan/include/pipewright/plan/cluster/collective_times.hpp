#pragma once

// How long collectives take on a machine that was measured: within a node as its table of sums
// says, or a ring over the link; between nodes as a ring over what a node has. What they are made
// of is counted first, so that a fit can try many constants on it.

#include <vector>

#include "pipewright/plan/cluster/cluster.hpp"

namespace pipewright::plan {

/// Where the devices of a group lie.
struct GroupPlace {
  int devices = 1;
  int beside = 1;         // groups of a node that do the same at once, this one included
  bool spans = false;     // it reaches over several nodes
  std::size_t level = 0;  // the outermost between neighbours (level_between)
  friend bool operator==(const GroupPlace&, const GroupPlace&) = default;
};
GroupPlace place_of(const Cluster& cluster, const std::vector<int>& devices);

/// Seconds of a sum, each part at what its source says.
struct SumTime {
  double table_s = 0;    // within a node, as the table has it
  double bulk_s = 0;     // … larger than the table, at its last bus bandwidth
  double network_s = 0;  // between nodes, at the link's bandwidth
  double inside_s = 0;   // meanwhile within the nodes, likewise: the longer of the two counts
  double steps_s = 0;    // latencies of a ring's steps
};
/// Several like it, one after another.
SumTime operator*(const SumTime& sum, double times);
/// Of `bytes` on each device of the group. Between nodes without latencies: NCCL sums over a tree
/// where a ring's steps would show.
SumTime sum_time(const Cluster& cluster, const GroupPlace& place, double bytes);
/// Latencies of a ring that goes through all devices of a node before it leaves it, twice round: as
/// to scatter a sum and to gather it, for which NCCL has rings alone.
double ring_steps_s(const Cluster& cluster, const GroupPlace& place);

/// Seconds in which each device of a group sends so many bytes to the others.
struct ExchangeTime {
  double node_s = 0;     // within a node, at the link's bandwidth
  double network_s = 0;  // between nodes, beside the other groups of the node
};
ExchangeTime exchange_time(const Cluster& cluster, const GroupPlace& place, double sent);

/// At a machine's constants: a sum of gradients, one of activations among shards, exchanges.
double gradient_sum_s(const SumTime& sum, const MachineConstants& constants);
double shard_sum_s(const SumTime& sum, const MachineConstants& constants);
double exchanges_s(const ExchangeTime& sent, int exchanges, const MachineConstants& constants);

}  // namespace pipewright::plan
