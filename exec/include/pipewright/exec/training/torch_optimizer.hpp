#pragma once

// Adapts LibTorch's optimizers to a pipeline: OptimizerOptions::own = torch_optimizer<Adagrad>().

#include <torch/optim/optimizer.h>

#include <memory>
#include <vector>

#include "pipewright/exec/training/user_optimizer.hpp"

namespace pipewright::exec {

/// Wraps `optimizer`, which must have one parameter group for each of `groups`, in the same order.
/// Throws InputError unless it is Adagrad, Adam, AdamW, RMSprop or SGD without dampening.
std::unique_ptr<UserOptimizer> wrapped(std::unique_ptr<torch::optim::Optimizer> optimizer,
                                       const std::vector<ParameterGroup>& groups);

/// Returns a function that makes a stage's optimizer of LibTorch's type `Kind`:
/// torch::optim::Adagrad, Adam, AdamW, RMSprop or SGD. Learning rate and weight decay come from
/// OptimizerOptions and its rule (ParameterRule); those of `options` are ignored.
template <class Kind, class Options>
MakeOptimizer torch_optimizer(const Options& options) {
  return [options](const std::vector<ParameterGroup>& groups) {
    std::vector<torch::optim::OptimizerParamGroup> theirs;
    for (const ParameterGroup& group : groups) {
      auto own = std::make_unique<Options>(options);
      own->weight_decay(group.rule.weight_decay);
      theirs.emplace_back(group.values(), std::move(own));
    }
    return wrapped(std::make_unique<Kind>(theirs, options), groups);
  };
}

}  // namespace pipewright::exec
