#pragma once

// A trained model's weights as safetensors files that other programs can load.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/tensors.hpp"

namespace pipewright::engine {

/// A layer's unpartitioned tensors, by name.
using LayerWeights = std::map<std::string, at::Tensor>;
/// A function that reads one layer. It is called once for each output file that contains part of
/// the layer.
using ReadLayer = std::function<LayerWeights(int layer)>;

/// Returns a reader of a checkpoint's layers. Partitioned tensors are joined.
ReadLayer layers_of(const exec::Checkpoint& checkpoint);

/// Returns the layer's tensor of this name. Throws InputError if there is none.
const at::Tensor& weight_named(const LayerWeights& weights, const std::string& name, int layer);

/// A tensor of an output file, and a function that makes it from its layer's weights.
struct FileTensor {
  exec::TensorShape shape;
  int layer = 0;
  std::function<at::Tensor(const LayerWeights& weights)> value;
};

/// Writes model.safetensors, or several such files and an index if the tensors exceed `most_bytes`.
/// Only one layer at a time is in memory. `tensors` must be sorted by layer. Rethrows exceptions of
/// `value`.
void write_weight_files(std::vector<FileTensor> tensors, const ReadLayer& layers,
                        const std::filesystem::path& out, std::int64_t most_bytes = 5'000'000'000);

}  // namespace pipewright::engine
