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

/// Where pipelines share out experts, those have fewer copies than the rest of a stage.
enum class CopiesOf { Experts, Rest };

/// Which of how many copies.
struct CopySeat {
  int index = 0;
  int count = 1;
};

/// The parameters of a stage, by the copies among which their numbers are divided.
class CopiedParameters {
 public:
  /// `of_experts`: by parameter, whether pipelines share it out as one of experts; empty: none.
  explicit CopiedParameters(std::vector<at::Tensor> parameters, std::vector<bool> of_experts = {});

  bool is_of_experts(std::size_t parameter) const {
    return !of_experts_.empty() && of_experts_[parameter];
  }
  /// Those that have such copies.
  std::vector<std::size_t> with(CopiesOf copies) const;
  /// What of those is that of one copy, in the order of parameters.
  std::vector<Slice> slices(CopiesOf copies, CopySeat seat) const;
  /// The same of all parameters.
  std::vector<Slice> slices(CopySeat of_rest, CopySeat of_experts) const;

 private:
  std::vector<at::Tensor> parameters_;
  std::vector<bool> of_experts_;
};

}  // namespace pipewright::exec
