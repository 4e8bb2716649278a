#pragma once

// Some ranks of a job as a group that communicates, such as one of a Grid's.

#include <string>
#include <vector>

#include "pipewright/exec/transport/transport.hpp"
#include "pipewright/plan/cluster/topology.hpp"

namespace pipewright::exec {

/// The ranks of a job that do a collective, and which of them this is. Every member calls each
/// collective, in the same order, and not while a step runs.
struct RankGroup {
  std::vector<int> ranks;  // in rising order
  int self = 0;            // a rank of the job
  Transport* transport = nullptr;

  int index() const;
  int size() const { return static_cast<int>(ranks.size()); }

  /// What each member hands in, in their order. It may be another member's own memory.
  std::vector<Tensors> all_gather(const Tensors& mine) const;
  /// The sums of what all hand in, which have equal shapes, in the order of members: the same bits
  /// on each of them.
  Tensors sum(const Tensors& mine) const;
  /// What the member at this place hands in; the others hand in anything.
  Tensors broadcast(const Tensors& mine, int from = 0) const;
  /// What each member says, in their order.
  std::vector<std::string> texts(const std::string& mine) const;
};

/// All ranks of a job.
RankGroup everybody(int size, int self, Transport& transport);

/// The group of `groups` that `self` is in, such as `Grid::data_groups()`. Throws InputError when
/// it is in none.
RankGroup group_of(const plan::RankGroups& groups, int self, Transport& transport);

}  // namespace pipewright::exec
