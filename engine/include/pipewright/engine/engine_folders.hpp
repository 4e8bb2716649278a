#pragma once

// Loads a Hugging Face model folder into an engine and saves an engine as such a folder.

#include <filesystem>

#include "pipewright/engine/engine.hpp"
#include "pipewright/plan/model/hugging_face_shape.hpp"

namespace pipewright::engine {

/// Loads the folder's weights into the engine; each process reads only what its layers need. The
/// engine's layers must be those that `builder_of<plan::HuggingFaceShape>()` builds for this folder
/// or for one with the same architecture. Throws InputError that lists all tensors that are missing
/// or have another shape.
void load_hugging_face(PipelineEngine& engine, const std::filesystem::path& folder);

/// Writes the engine's weights as a folder that transformers can load (`write_folder`), with
/// config.json and the tokenizer files of `model`, the folder that its layers came from. Every
/// process of a job must call it at the same point, with a folder that all of them can access. The
/// first process writes; the others pass it their parts through a temporary checkpoint in the same
/// folder, which is removed.
void save_hugging_face(PipelineEngine& engine, const std::filesystem::path& model,
                       const std::filesystem::path& out);

}  // namespace pipewright::engine
