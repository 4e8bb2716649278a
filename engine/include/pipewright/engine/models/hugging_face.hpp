#pragma once

// A trained model as a folder that transformers loads.

#include <cstdint>
#include <filesystem>

#include "pipewright/engine/models/weight_files.hpp"
#include "pipewright/plan/model/hugging_face_shape.hpp"

namespace pipewright::engine {

/// Writes the weights; config.json, with their type; and the tokenizer's files of the model's
/// folder. Throws InputError where a layer is not the model's.
void write_folder(const plan::HuggingFaceShape& shape, const ReadLayer& layers,
                  const std::filesystem::path& out, std::int64_t most_bytes = 5'000'000'000);

}  // namespace pipewright::engine
