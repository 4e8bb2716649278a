#pragma once

// A group of ranks of a job that communicate, such as a group of a Grid.

#include <string>
#include <vector>

#include "pipewright/exec/transport/transport.hpp"
#include "pipewright/plan/cluster/topology.hpp"

namespace pipewright::exec {

/// The ranks of a job that take part in a collective, and this rank's place among them. Every rank
/// of the group must call each collective, in the same order, and not while a step runs.
struct RankGroup {
  std::vector<int> ranks;  // in ascending order
  int self = 0;            // a rank of the job
  Transport* transport = nullptr;

  int index() const;
  int size() const { return static_cast<int>(ranks.size()); }

  /// Returns the tensors of each rank, in order. They may be another rank's own memory.
  std::vector<Tensors> all_gather(const Tensors& mine) const;
  /// Returns the sums of the tensors of all ranks, which must have equal shapes, added in the order
  /// of ranks: all ranks get the same bits.
  Tensors sum(const Tensors& mine) const;
  /// Returns the tensors of the rank at index `from` of the group. The arguments of the others are
  /// ignored.
  Tensors broadcast(const Tensors& mine, int from = 0) const;
  /// Returns the text of each rank, in order.
  std::vector<std::string> texts(const std::string& mine) const;
};

/// Returns the group of all ranks of a job.
RankGroup everybody(int size, int self, Transport& transport);

/// Returns the group of `groups` that contains `self`, such as one of `Grid::data_groups()`. Throws
/// InputError if none exists.
RankGroup group_of(const plan::RankGroups& groups, int self, Transport& transport);

}  // namespace pipewright::exec
