#pragma once

// Selective recomputation: activations that a layer does not keep, and computes again.

#include <functional>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

/// `work(inputs)`. Only the inputs are kept: the backward runs `work` again, with the same bits.
/// `work` has no parameters of its own and draws no random numbers.
at::Tensor run_again_in_backward(std::function<at::Tensor(const Tensors&)> work,
                                 const Tensors& inputs);

/// The same of work with several outputs, and with parameters of its own: those that it trains.
Tensors run_again_in_backward(std::function<Tensors(const Tensors&)> work, const Tensors& inputs,
                              const Tensors& parameters);

}  // namespace pipewright::exec
