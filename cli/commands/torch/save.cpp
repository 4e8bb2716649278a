#include <nlohmann/json.hpp>

#include "commands/torch/torch_commands.hpp"
#include "exit_code.hpp"
#include "pipewright/engine/models/hugging_face.hpp"
#include "pipewright/engine/models/imported.hpp"
#include "pipewright/exec/checkpoint/list_checkpoints.hpp"
#include "pipewright/plan/error.hpp"
#include "print/console.hpp"

namespace pipewright::cli {

namespace {

/// Opens the newest complete checkpoint in the folder; throws unless it has `layers` layers.
exec::Checkpoint checkpoint_in(const std::string& folder, std::size_t layers) {
  exec::Checkpoint checkpoint =
      exec::open_newest(folder, [](const std::string& line) { say(line); });
  if (checkpoint.layers().size() != layers)
    throw plan::InputError(fmt::format("{}: the checkpoint has {} layers, but the model has {}",
                                       checkpoint.folder().string(), checkpoint.layers().size(),
                                       layers));
  return checkpoint;
}

}  // namespace

int save_scenario(const SaveOptions& options) {
  const plan::Scenario scenario = read_scenario(options.scenario);
  const auto* const folder = scenario.model.find<plan::HuggingFaceShape>();
  const auto* const imported = scenario.model.find<plan::ImportedShape>();
  if (folder == nullptr && imported == nullptr)
    throw plan::InputError(
        fmt::format("{}: model.kind is {}; only models of kind hf or imported can be saved",
                    options.scenario.file, scenario.model.kind()));
  const exec::Checkpoint checkpoint =
      checkpoint_in(options.checkpoints, model_of(scenario).layers.size());
  const engine::ReadLayer layers = engine::layers_of(checkpoint);
  if (folder != nullptr)
    engine::write_folder(*folder, layers, options.out);
  else
    engine::write_imported(*imported->model, layers, options.out);
  const std::string from = checkpoint.folder().string();
  if (options.scenario.json)
    fmt::print("{}\n", plan::Json{{"checkpoint", from}, {"folder", options.out}}.dump(2));
  else
    fmt::print("{} as {}\n", from, options.out);
  return Done;
}

}  // namespace pipewright::cli
