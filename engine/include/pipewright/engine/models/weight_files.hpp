#pragma once

// A trained model's weights as safetensors files that other programs load.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/tensors.hpp"

namespace pipewright::engine {

/// What a layer has of tensors, by name, whole.
using LayerWeights = std::map<std::string, at::Tensor>;
/// It is asked once for each file that has some of the layer.
using ReadLayer = std::function<LayerWeights(int layer)>;

/// Those of a checkpoint; what shards share out is put together.
ReadLayer layers_of(const exec::Checkpoint& checkpoint);

/// Throws InputError where the layer has none of this name.
const at::Tensor& weight_named(const LayerWeights& weights, const std::string& name, int layer);

/// A tensor of a file, and what makes it of the layer that has it.
struct FileTensor {
  exec::TensorShape shape;
  int layer = 0;
  std::function<at::Tensor(const LayerWeights& weights)> value;
};

/// Writes model.safetensors, or where its numbers are more than `most_bytes` several such files and
/// their index. One layer at a time is in memory. Layers rise. Throws what `value` does.
void write_weight_files(std::vector<FileTensor> tensors, const ReadLayer& layers,
                        const std::filesystem::path& out, std::int64_t most_bytes = 5'000'000'000);

}  // namespace pipewright::engine
