#pragma once

// Times of collectives on a measured machine. Within a node they come from its table of
// all-reduces, or from a ring over the link; between nodes from a ring over the node's bandwidth.
// Each time is first split by its source, so that a fit can try many constants on it.

#include <vector>

#include "pipewright/plan/cluster/cluster.hpp"

namespace pipewright::plan {

/// How the devices of a group are spread over nodes.
struct GroupPlace {
  int devices = 1;
  int beside = 1;         // groups of a node that communicate at the same time, this one included
  bool spans = false;     // true if the group includes devices of several nodes
  std::size_t level = 0;  // outermost level between neighbors (level_between)
  friend bool operator==(const GroupPlace&, const GroupPlace&) = default;
};
/// Returns how a group of these devices is spread over the cluster.
GroupPlace place_of(const Cluster& cluster, const std::vector<int>& devices);

/// Seconds of an all-reduce, divided by the source of each part.
struct SumTime {
  double table_s = 0;    // within a node, from the measured table
  double bulk_s = 0;     // within a node, beyond the table, at its last bus bandwidth
  double network_s = 0;  // between nodes, at the link's bandwidth
  double inside_s = 0;   // within the nodes at the same time; the longer of the two counts
  double steps_s = 0;    // latencies of a ring's steps
};
/// Returns the time of `times` such all-reduces, one after another.
SumTime operator*(const SumTime& sum, double times);
/// Returns the time of an all-reduce of `bytes` on each device of the group. Between nodes it has
/// no latencies, because NCCL uses a tree where the steps of a ring would be noticeable.
SumTime sum_time(const Cluster& cluster, const GroupPlace& place, double bytes);
/// Returns the latencies of a ring that visits all devices of a node before it leaves the node, for
/// two rounds: a reduce-scatter and an all-gather, for which NCCL has only rings.
double ring_steps_s(const Cluster& cluster, const GroupPlace& place);

/// Seconds of an all-to-all in which each device of a group sends a given number of bytes to the
/// others.
struct ExchangeTime {
  double node_s = 0;     // within a node, at the link's bandwidth
  double network_s = 0;  // between nodes, shared with the other groups of the node
};
ExchangeTime exchange_time(const Cluster& cluster, const GroupPlace& place, double sent);

/// Apply a machine's constants: to an all-reduce of gradients, to a tensor-parallel all-reduce of
/// activations, and to all-to-alls.
double gradient_sum_s(const SumTime& sum, const MachineConstants& constants);
double shard_sum_s(const SumTime& sum, const MachineConstants& constants);
double exchanges_s(const ExchangeTime& sent, int exchanges, const MachineConstants& constants);

}  // namespace pipewright::plan
