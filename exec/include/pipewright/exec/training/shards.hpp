#pragma once

// Numbers of parameters divided into shards: for the optimizer's states (ZeRO) and for sums of
// gradients over copies.

#include <cstdint>
#include <vector>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

/// A multiple of the lengths of all vectors that kernels compute with: four of AVX-512's, which
/// loops take at once. In numbers.
inline constexpr std::int64_t longest_vector = 64;

/// Where one slice lies: numbers [begin, end) of a parameter.
struct Slice {
  std::size_t parameter = 0;
  std::int64_t begin = 0, end = 0;

  /// The slice of a tensor with the parameter's numbers; the tensor itself when it is all of it.
  at::Tensor of(const at::Tensor& tensor) const;
};

/// The numbers of all parameters, one behind the other, divided evenly up to the length of a
/// vector: each number keeps its place in the vectors that kernels compute with, so its bits do not
/// depend on where it is cut.
class ShardsOf {
 public:
  ShardsOf(const std::vector<at::Tensor>& parameters, int count);
  /// At most one slice of a parameter, in their order. Of one shard alone, all parameters.
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

}  // namespace pipewright::exec
