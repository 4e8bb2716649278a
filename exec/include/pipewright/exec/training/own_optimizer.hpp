#pragma once

// What an optimizer of one's own is to a stage: something that steps its parameters, and whose
// states go into checkpoints.

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

/// What an update does to a parameter beside its gradient.
struct ParameterRule {
  double weight_decay = 0.01;
  double rate = 1;  // its part of the learning rate
  friend auto operator<=>(const ParameterRule&, const ParameterRule&) = default;
};

/// A parameter, for those who say its rule or look at its gradient. A tied one is that of the first
/// layer with its key; of one that shards cut, the sizes of a part.
struct RuledParameter {
  std::string layer;
  std::string name;  // in the layer
  std::vector<std::int64_t> sizes;
};

/// A parameter as an optimizer of one's own sees it. Of 16 bits, `value` is the master copy in 32;
/// where ZeRO shares out the states, the numbers of the own shard in a row.
struct OwnParameter {
  RuledParameter what;
  at::Tensor value;  // a leaf; in a step `value.grad()` is its gradient, clipped and unscaled
};

/// Those of a stage for which one rule holds.
struct ParameterGroup {
  ParameterRule rule;
  std::vector<OwnParameter> parameters;

  Tensors values() const;
};

/// One of one's own tensors.
struct OwnState {
  at::Tensor parameter;  // the `value` that it is kept for
  std::string name;      // such as "sum"; in a checkpoint behind the parameter's name
  at::Tensor value;      // as many numbers as that; or without dimensions, such as a count of steps
};

/// Steps the parameters that it was made with. A step that is the same for each number, wherever it
/// lies in a tensor, has the bits of serial training under every plan but one whose shards cut
/// tensors (LayerSpec::build_shard).
class OwnOptimizer {
 public:
  virtual ~OwnOptimizer() = default;
  /// One update of all parameters, in place. A group's rate is `learning_rate` times that of its
  /// rule.
  virtual void step(double learning_rate) = 0;
  /// All that it keeps: the same list at any time, before the first step, too. Changing a value
  /// changes the optimizer.
  virtual std::vector<OwnState> states() { return {}; }
  /// Values of `states` were set from a checkpoint.
  virtual void states_were_set() {}
};

/// Makes the optimizer of a stage, on its rank.
using MakeOptimizer =
    std::function<std::unique_ptr<OwnOptimizer>(const std::vector<ParameterGroup>&)>;

}  // namespace pipewright::exec
