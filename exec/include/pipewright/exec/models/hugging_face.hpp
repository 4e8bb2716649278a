#pragma once

// A trained model as a folder that transformers loads.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/tensors.hpp"
#include "pipewright/plan/model/hugging_face_shape.hpp"

namespace pipewright::exec {

/// The parameters of a layer by name, whole. It is asked once for each file that has some of them.
using ReadLayer = std::function<std::map<std::string, at::Tensor>(int layer)>;

/// Those of a checkpoint; what shards share out is put together.
ReadLayer layers_of(const Checkpoint& checkpoint);

/// Writes model.safetensors, or where its numbers are more than `most_bytes` several such files and
/// their index; config.json, with their type; and the tokenizer's files of the model's folder. One
/// layer at a time is in memory. Throws InputError where a layer is not
/// the model's.
void write_folder(const plan::HuggingFaceShape& shape, const ReadLayer& layers,
                  const std::filesystem::path& out, std::int64_t most_bytes = 5'000'000'000);

}  // namespace pipewright::exec
