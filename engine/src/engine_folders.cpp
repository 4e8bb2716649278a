#include "pipewright/engine/engine_folders.hpp"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "models/folder_weights.hpp"
#include "pipewright/engine/models/hugging_face.hpp"
#include "pipewright/engine/models/transformer.hpp"
#include "pipewright/exec/checkpoint/list_checkpoints.hpp"
#include "pipewright/exec/rank/training_state.hpp"
#include "pipewright/exec/stage/stage.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::engine {
namespace {

namespace fs = std::filesystem;

plan::HuggingFaceShape shape_in(const fs::path& folder) {
  plan::HuggingFaceShape shape{.path = folder.string()};
  shape.transformer.sequence = 1;  // no weight depends on it
  return plan::with_config(std::move(shape));
}

/// Checks that the engine's layers have the names and tensors of the folder's model.
void require_layers_of(const plan::HuggingFaceShape& shape, const exec::TrainingSetup& setup) {
  exec::TrainingSetup folder;
  folder.layers = transformer_layers(shape.transformer);
  folder.precision = setup.precision;
  const auto wanted = exec::shapes_of(folder), own = exec::shapes_of(setup);
  for (std::size_t layer = 0; layer < std::max(wanted.size(), own.size()); ++layer)
    if (layer >= wanted.size() || layer >= own.size() || wanted[layer].name != own[layer].name ||
        wanted[layer].parameters != own[layer].parameters)
      throw plan::InputError(
          fmt::format("{}: layer {} of the engine differs from the folder's model; build the "
                      "layers with builder_of",
                      shape.path, layer));
}

}  // namespace

void load_hugging_face(PipelineEngine& engine, const fs::path& folder) {
  const plan::HuggingFaceShape shape = shape_in(folder);
  require_layers_of(shape, engine.setup());
  auto weights = exec::WeightFolder::open(folder);
  if (!weights)
    throw plan::InputError(
        fmt::format("{}: it has neither model.safetensors nor pytorch_model.bin, nor an index of "
                    "several such files",
                    folder.string()));
  const FolderWeights source(shape, std::move(*weights));
  engine.executor().visit_stages([&](exec::Stage& stage) {
    const at::NoGradGuard no_grad;
    for (int layer = stage.spec().first; layer < stage.spec().last; ++layer)
      source.fill(layer, stage.layers().at(layer), stage.spec().place);
    stage.optimizer().refresh_masters();
  });
}

void save_hugging_face(PipelineEngine& engine, const fs::path& model, const fs::path& out) {
  const plan::HuggingFaceShape shape = shape_in(model);
  require_layers_of(shape, engine.setup());
  const fs::path parts = out / "parts.tmp";
  engine.save_checkpoint(parts, {.optimizer = false});
  if (!engine.is_first_process())
    return;
  const exec::Checkpoint whole = exec::open_newest(parts, [](const std::string&) {});
  write_folder(shape, layers_of(whole), out);
  std::error_code ignored;
  fs::remove_all(parts, ignored);
}

}  // namespace pipewright::engine
