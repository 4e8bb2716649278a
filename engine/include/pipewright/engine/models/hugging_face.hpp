#pragma once

// Export of a trained model as a folder that transformers can load.

#include <cstdint>
#include <filesystem>

#include "pipewright/engine/models/weight_files.hpp"
#include "pipewright/plan/model/hugging_face_shape.hpp"

namespace pipewright::engine {

/// Writes the weights, config.json with their data type, and the tokenizer files of the model's
/// folder. Throws InputError if a layer is not the model's.
void write_folder(const plan::HuggingFaceShape& shape, const ReadLayer& layers,
                  const std::filesystem::path& out, std::int64_t most_bytes = 5'000'000'000);

}  // namespace pipewright::engine
