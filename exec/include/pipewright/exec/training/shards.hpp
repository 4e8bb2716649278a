#pragma once

// Divides the elements of parameters into shards, for the optimizer's states (ZeRO) and for
// gradient sums over data-parallel replicas.

#include <cstdint>
#include <vector>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

/// A multiple, in elements, of the lengths of all SIMD vectors that kernels use: four AVX-512
/// vectors, which loops process at once.
inline constexpr std::int64_t longest_vector = 64;

/// A slice of a parameter: elements [begin, end).
struct Slice {
  std::size_t parameter = 0;
  std::int64_t begin = 0, end = 0;

  /// Returns the slice of a tensor that has the parameter's shape; the tensor itself if the slice
  /// is all of it.
  at::Tensor of(const at::Tensor& tensor) const;
};

/// Divides the concatenated elements of all parameters evenly, rounded to SIMD vectors: each
/// element keeps its position in the vectors that kernels use, so its bits do not depend on the
/// cuts.
class ShardsOf {
 public:
  ShardsOf(const std::vector<at::Tensor>& parameters, int count);
  /// Returns a shard's slices, at most one of each parameter, in their order. With one shard, these
  /// are all parameters.
  std::vector<Slice> of(int shard) const;

 private:
  struct Parameter {
    std::int64_t numbers = 0;
    bool is_contiguous = true;
  };
  static std::int64_t cut_at(std::int64_t wanted, const Parameter& parameter);

  std::vector<Parameter> parameters_;
  std::int64_t all_ = 0;
  int count_;
};

/// Experts: the parameters of experts, which under expert parallelism have fewer replicas. Rest:
/// all other parameters of a stage.
enum class CopiesOf { Experts, Rest };

/// A replica's index among all replicas.
struct ReplicaIndex {
  int index = 0;
  int count = 1;
};

/// The parameters of a stage, grouped by the replicas that divide them into slices.
class CopiedParameters {
 public:
  /// `of_experts`: by parameter, true for those that an expert-parallel group partitions; empty:
  /// none.
  explicit CopiedParameters(std::vector<at::Tensor> parameters, std::vector<bool> of_experts = {});

  bool is_of_experts(std::size_t parameter) const {
    return !of_experts_.empty() && of_experts_[parameter];
  }
  /// Returns the indices of the parameters with such replicas.
  std::vector<std::size_t> with(CopiesOf copies) const;
  /// Returns one replica's slices of those parameters, in the order of parameters.
  std::vector<Slice> slices(CopiesOf copies, ReplicaIndex seat) const;
  /// Returns one replica's slices of all parameters.
  std::vector<Slice> slices(ReplicaIndex of_rest, ReplicaIndex of_experts) const;

 private:
  std::vector<at::Tensor> parameters_;
  std::vector<bool> of_experts_;
};

}  // namespace pipewright::exec
