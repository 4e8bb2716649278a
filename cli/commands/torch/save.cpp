#include <nlohmann/json.hpp>

#include "commands/torch/torch_commands.hpp"
#include "exit_code.hpp"
#include "pipewright/exec/checkpoint/list_checkpoints.hpp"
#include "pipewright/exec/models/hugging_face.hpp"
#include "pipewright/plan/error.hpp"
#include "print/console.hpp"

namespace pipewright::cli {

int save_scenario(const SaveOptions& options) {
  const plan::Scenario scenario = read_scenario(options.scenario);
  const auto* const folder = scenario.model.find<plan::HuggingFaceShape>();
  if (folder == nullptr)
    throw plan::InputError(
        fmt::format("{}: model.kind is {}; a folder is made of a model of kind hf",
                    options.scenario.file, scenario.model.kind()));
  const exec::Checkpoint checkpoint =
      exec::open_newest(options.checkpoints, [](const std::string& line) { say(line); });
  const auto layers = static_cast<std::size_t>(plan::layer_count(*folder));
  if (checkpoint.layers().size() != layers)
    throw plan::InputError(fmt::format("{}: it has {} layers, the model has {}",
                                       checkpoint.folder().string(), checkpoint.layers().size(),
                                       layers));
  exec::write_folder(*folder, exec::layers_of(checkpoint), options.out);
  const std::string from = checkpoint.folder().string();
  if (options.scenario.json)
    fmt::print("{}\n", plan::Json{{"checkpoint", from}, {"folder", options.out}}.dump(2));
  else
    fmt::print("{} as {}\n", from, options.out);
  return Done;
}

}  // namespace pipewright::cli
