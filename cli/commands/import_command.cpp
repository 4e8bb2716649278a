#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands/commands.hpp"
#include "exit_code.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/imported_model.hpp"
#include "pipewright/plan/model/model_descriptor.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "print/console.hpp"
#include "print/import_table.hpp"

namespace pipewright::cli {
namespace {

struct ImportOptions {
  std::string archive;
  std::string out;
  std::string by = "modules";
  plan::LayerBoundaries borders;
  bool json = false;
};

plan::ImportedModel imported(const ImportOptions& options) {
  plan::LayerBoundaries borders = options.borders;
  const auto& words = plan::layers_by_words();
  borders.by = static_cast<plan::LayersBy>(std::ranges::find(words, options.by) - words.begin());
  if (borders.count > 0)
    borders.by = plan::LayersBy::Bytes;
  plan::ExportedProgram program = plan::read_exported(options.archive);
  plan::ExportedLayers layers = layers_of(program, borders);
  return plan::imported_model(options.archive, std::move(program), std::move(layers));
}

/// Returns the smallest scenario that trains the model: on two ranks of this machine.
plan::Scenario first_scenario(const std::filesystem::path& folder,
                              const plan::ImportedModel& model) {
  plan::Scenario scenario;
  scenario.name = folder.filename().string();
  scenario.model =
      plan::ImportedShape{.path = ".", .model = std::make_shared<const plan::ImportedModel>(model)};
  scenario.data = {.kind = std::string(plan::samples_data.name), .path = "samples.safetensors"};
  scenario.cluster.name = "this-machine";
  scenario.cluster.devices_per_node = 2;
  scenario.pipeline.ranks = std::min<int>(2, static_cast<int>(model.layers.layers.size()));
  scenario.pipeline.microbatches = 4;
  scenario.pipeline.partition = std::string("profile");
  scenario.training.microbatch_size = model.batch;
  return scenario;
}

/// Writes the folder. Existing files stay, except for the layers, because a scenario may have been
/// edited by hand.
void write_folder(const ImportOptions& options, plan::ImportedModel model) {
  namespace fs = std::filesystem;
  const fs::path folder = options.out;
  fs::create_directories(folder);
  const fs::path archive = folder / "model.pt2";
  std::error_code none;
  if (!fs::equivalent(options.archive, archive, none))
    fs::copy_file(options.archive, archive, fs::copy_options::overwrite_existing);
  model.archive = archive;
  plan::write_file(folder / "layers.json", layers_json(model).dump(1) + "\n");
  if (!fs::exists(folder / "scenario.json"))
    plan::write_file(folder / "scenario.json",
                     to_json(first_scenario(folder, model)).dump(2) + "\n");
}

int import_model(const ImportOptions& options) {
  const plan::ImportedModel model = imported(options);
  if (!options.out.empty())
    write_folder(options, model);
  if (options.json)
    fmt::print("{}\n", import_json(model).dump(2));
  else
    fmt::print("{}", import_table(model));
  return Done;
}

Command describe_import(ImportOptions& options) {
  return {
      .name = "import",
      .summary = "Convert a module exported by PyTorch to layers",
      .options = {{.names = "MODEL",
                   .target = &options.archive,
                   .help = "The output of torch.export.save or pipewright.torch.export: model.pt2",
                   .required = true},
                  {.names = "-o,--out",
                   .target = &options.out,
                   .help = "Write the model, its layers and, unless it exists, a first scenario to "
                           "this folder",
                   .value = "FOLDER"},
                  {.names = "--by",
                   .target = &options.by,
                   .help = "The ends of layers: after the modules of lists, such as h.3, or at the "
                           "module's calls of pipe_split",
                   .value = "WHAT",
                   .choices = plan::layers_by_words()},
                  {.names = "--layers",
                   .target = &options.borders.count,
                   .help =
                       "Split into this many layers instead, at boundaries that few bytes cross",
                   .value = "N",
                   .numbers = Numbers::Positive,
                   .excludes = {"--before", "--after"}},
                  {.names = "--before",
                   .target = &options.borders.before,
                   .help = "Start a layer with this module; with --before or --after, only there; "
                           "may be repeated",
                   .value = "MODULE",
                   .repeated = true},
                  {.names = "--after",
                   .target = &options.borders.after,
                   .help = "End a layer with this module; may be repeated",
                   .value = "MODULE",
                   .repeated = true},
                  {.names = "--json", .target = &options.json, .help = "Print JSON"}},
      .examples =
          "Example: pipewright import model.pt2 -o gpt2 && pipewright train "
          "gpt2/scenario.json --set data.path=tokens.bin"};
}

}  // namespace

Command import_command() { return make_command(describe_import, import_model); }

}  // namespace pipewright::cli
