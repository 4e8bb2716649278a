#pragma once

// All-to-all of tokens to the ranks of their experts and back. The backward sends gradients in the
// opposite direction. All ranks of the group must call it at the same point.

#include "pipewright/exec/training/shard_group.hpp"
#include "routing.hpp"

namespace pipewright::engine {

class TokenExchange {
 public:
  /// Exchanges counts with the other ranks. `counts`: this rank's rows for each of all experts.
  TokenExchange(const exec::ExpertPlace& place, const Counts& counts, at::Device device);

  /// Sends rows, sorted by expert, to the experts' ranks. Returns the rows for this rank's experts,
  /// by source replica, then by expert.
  at::Tensor go(const at::Tensor& rows) const;
  /// Sends results back. Returns rows in the order of all experts.
  at::Tensor come_back(const at::Tensor& rows) const;
  /// Returns the rows of each of this rank's experts, by source replica.
  const std::vector<Counts>& counts_here() const { return here_; }

 private:
  exec::ExpertPlace place_;
  std::vector<Counts> here_;
  Counts sent_, received_;  // rows by rank
};

}  // namespace pipewright::engine
