#pragma once

// The tensors that layers, stages and ranks pass to each other.

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

namespace pipewright::exec {

/// The tensors passed between layers, stages and ranks: one or several, of any type. An entry may
/// be undefined if it has no value, such as the gradient of an integer tensor.
using Tensors = std::vector<at::Tensor>;

/// Keyword arguments: tensors by name.
using NamedTensors = std::map<std::string, at::Tensor>;

}  // namespace pipewright::exec
