#pragma once

// The payload of layers, stages and transfers.

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

namespace pipewright::exec {

/// What passes between layers, stages and ranks: one tensor or several, of any type. An entry may
/// be undefined where there is nothing to say, such as the gradient of an integer tensor.
using Tensors = std::vector<at::Tensor>;

/// Keyword arguments: tensors by name.
using NamedTensors = std::map<std::string, at::Tensor>;

}  // namespace pipewright::exec
