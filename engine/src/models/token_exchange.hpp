#pragma once

// Tokens on their way to the ranks that have their experts, and back: what a rank sends in the
// forward it gets in the backward. All ranks of the group do this at the same time.

#include "pipewright/exec/training/shard_group.hpp"
#include "routing.hpp"

namespace pipewright::engine {

class TokenExchange {
 public:
  /// `counts`: rows of each of all experts that this rank has. Tells the other ranks.
  TokenExchange(const exec::ExpertPlace& place, const Counts& counts, at::Device device);

  /// Rows in the order of experts to those of this rank's experts: by pipeline, and of one in the
  /// order of experts.
  at::Tensor go(const at::Tensor& rows) const;
  /// What has become of them, to rows in the order of all experts.
  at::Tensor come_back(const at::Tensor& rows) const;
  /// By pipeline: rows of each of this rank's experts.
  const std::vector<Counts>& counts_here() const { return here_; }

 private:
  exec::ExpertPlace place_;
  std::vector<Counts> here_;
  Counts sent_, received_;  // rows by rank
};

}  // namespace pipewright::engine
