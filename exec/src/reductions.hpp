#pragma once

// Sums of gradients over ranks, in an order that does not depend on who asks.

#include <vector>

#include "pipewright/exec/transport.hpp"
#include "stage.hpp"

namespace pipewright::exec {

/// The ranks of a job among which something is exchanged, and which of them this is.
struct Members {
  std::vector<int> ranks;  // in rising order
  int self = 0;            // a rank of the job
  Transport* transport = nullptr;

  std::vector<Tensors> exchange(const Tensors& mine) const {
    return ranks.size() == 1 ? std::vector<Tensors>{mine} : transport->exchange(ranks, self, mine);
  }
  int index() const;
};

/// Sums the gradients of each tied weight over its layers, in the order of layers. `stages`: those
/// of this rank that hold such a layer.
void reduce_tied(const std::vector<Stage*>& stages, const TrainingSetup& setup,
                 const Members& members);

/// Sums the gradients of all copies of a stage, in the order of gradient groups.
void reduce_copies(Stage& stage, const Members& members);

/// After an update by shards, every copy of the stage gets the parameters of all.
void gather_shards(Stage& stage, const Members& members);

}  // namespace pipewright::exec
