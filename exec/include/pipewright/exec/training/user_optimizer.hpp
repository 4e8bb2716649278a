#pragma once

// The interface of a user's optimizer, which steps a stage's parameters and whose states go into
// checkpoints.

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

/// The weight decay and learning rate factor of a parameter.
struct ParameterRule {
  double weight_decay = 0.01;
  double rate = 1;  // factor of the learning rate
  friend auto operator<=>(const ParameterRule&, const ParameterRule&) = default;
};

/// The description of a parameter, for functions that choose its rule or look at its gradient. A
/// tied weight is described as that of the first layer with its key; a partitioned one has the
/// sizes of its part.
struct RuledParameter {
  std::string layer;
  std::string name;  // in the layer
  std::vector<std::int64_t> sizes;
};

/// A parameter as a user's optimizer sees it. For 16-bit parameters, `value` is the 32-bit master
/// copy; if ZeRO shards the states, it is this rank's slice, flat.
struct OptimizerParameter {
  RuledParameter what;
  at::Tensor value;  // a leaf; in a step `value.grad()` is its gradient, clipped and unscaled
};

/// The parameters of a stage that have the same rule.
struct ParameterGroup {
  ParameterRule rule;
  std::vector<OptimizerParameter> parameters;

  Tensors values() const;
};

/// A tensor that a user's optimizer keeps.
struct UserOptimizerState {
  at::Tensor parameter;  // the `value` of the parameter that it belongs to
  std::string name;      // such as "sum"; follows the parameter's name in checkpoints
  at::Tensor value;      // as many elements as `parameter`, or zero-dimensional like a step count
};

/// Steps the parameters that it was made with. If a step is elementwise, training has the same bits
/// as serial training under every plan, except where tensor parallelism partitions tensors
/// (LayerSpec::build_shard).
class UserOptimizer {
 public:
  virtual ~UserOptimizer() = default;
  /// Updates all parameters in place. A group's rate is `learning_rate` times that of its rule.
  virtual void step(double learning_rate) = 0;
  /// Returns all tensors that it keeps: the same list at any time, also before the first step.
  /// Changing a value changes the optimizer.
  virtual std::vector<UserOptimizerState> states() { return {}; }
  /// Called after values of `states` were set from a checkpoint.
  virtual void states_were_set() {}
};

/// Makes the optimizer of a stage, on its rank.
using MakeOptimizer =
    std::function<std::unique_ptr<UserOptimizer>(const std::vector<ParameterGroup>&)>;

}  // namespace pipewright::exec
