#pragma once

// A folder of Hugging Face and an engine of its model's layers, both ways.

#include <filesystem>

#include "pipewright/engine/engine.hpp"
#include "pipewright/plan/model/hugging_face_shape.hpp"

namespace pipewright::engine {

/// The engine's weights become those of the folder, each process reading what it has. The engine's
/// layers are those that `builder_of<plan::HuggingFaceShape>()` makes of the folder, or of one like
/// it. Throws InputError with all that is missing or of another shape.
void load_hugging_face(PipelineEngine& engine, const std::filesystem::path& folder);

/// Writes the engine's weights as a folder that transformers loads (`write_folder`), with
/// config.json and the tokenizer's files of `model`, the folder that its layers came from. Every
/// process of a job calls it at once, with a folder that all of them see: the first one writes, the
/// others hand over their parts through a checkpoint beside it, which is removed.
void save_hugging_face(PipelineEngine& engine, const std::filesystem::path& model,
                       const std::filesystem::path& out);

}  // namespace pipewright::engine
