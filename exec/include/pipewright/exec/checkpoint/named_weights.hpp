#pragma once

// Weights by name, from memory, from a checkpoint or from files of other toolkits. A tensor is read
// only when it is requested, so a rank reads only its own.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace pipewright::exec {

/// Tensors by name, such as "block1.0.weight": a layer's name, and the name in the layer.
using StateDict = std::map<std::string, at::Tensor>;

struct NamedWeights {
  std::string where;  // a file or folder, for messages
  std::map<std::string, std::vector<std::int64_t>> sizes{};
  /// Reads an existing tensor. Throws InputError if the file cannot be read.
  std::function<at::Tensor(const std::string& name)> read{};
};

class WeightFolder;

NamedWeights weights_of(StateDict state);
NamedWeights weights_of(const WeightFolder& folder);

/// Reads all tensors.
StateDict read_all(const NamedWeights& weights);

}  // namespace pipewright::exec
