#pragma once

// Tensor and expert parallelism, as a layer sees them: the ranks that share out its heads, widths
// and vocabulary (Megatron-LM, arXiv 1909.08053) or its experts (GShard, arXiv 2006.16668), and
// which of them this one is.

#include <cstdint>
#include <string>
#include <vector>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

/// Ranks that share out one stage, seen by one of them. All call the same functions in the same
/// order; the calls of a forward or a backward are made while the rank computes, and it waits for
/// them.
class ShardGroup {
 public:
  virtual ~ShardGroup() = default;
  /// Each shard hands in a part for each shard, and gets those that are for it, in the order of
  /// shards. Parts may differ in shape from shard to shard. What comes back may be another's own
  /// memory: it is read, not changed.
  virtual Tensors all_to_all(const Tensors& parts) = 0;
};

/// Ranks that hold the same stage in pipelines side by side and share out its experts: each has
/// equally many of them, in order, and gets the tokens of all pipelines for them.
struct ExpertPlace {
  int index = 0;
  int count = 1;
  ShardGroup* group = nullptr;  // outlives the layer; none where `count` is 1
  friend bool operator==(const ExpertPlace&, const ExpertPlace&) = default;
};

/// Which part of a layer is built. Products over a width that shards share out are added up in
/// `groups` equal parts, of which each shard has as many: results do not depend on `count`.
struct ShardPlace {
  int index = 0;
  int count = 1;
  int groups = 1;               // a multiple of `count`
  ShardGroup* group = nullptr;  // outlives the layer; none where `count` is 1
  ExpertPlace experts{};
  friend bool operator==(const ShardPlace&, const ShardPlace&) = default;
};

/// A parameter of which each shard has a part: along `dimension`, which holds `blocks` equal parts
/// (three for queries, keys and values in one matrix), each of which is shared out
/// (cut_parameter.hpp).
struct CutParameter {
  std::string name;
  int dimension = 0;
  int blocks = 1;
  std::int64_t whole = 0;  // the parameter's length there, over all shards
  /// It has a row or a matrix for each of so many experts along dimension 0, which is not the other
  /// one: ranks along the expert axis share out these, and shards the rest. 0: it is of no expert.
  int experts = 0;
  friend bool operator==(const CutParameter&, const CutParameter&) = default;
};

}  // namespace pipewright::exec
