#pragma once

// A module exported by PyTorch as the model of a scenario: a folder with the archive and the list
// of its layers, as `pipewright import` writes it.

#include <filesystem>
#include <memory>
#include <string>

#include "pipewright/plan/exported/exported_layers.hpp"
#include "pipewright/plan/exported/exported_program.hpp"
#include "pipewright/plan/model/model_shape.hpp"

namespace pipewright::plan {

/// The content of a model folder.
struct ImportedModel {
  std::filesystem::path archive;  // the .pt2
  ExportedProgram program;
  ExportedLayers layers;
  int batch = 1;  // samples in the export's batch, and in each microbatch
  /// The layers for planning. Their FLOPs count only matrix products and convolutions.
  Model planned{};
  friend bool operator==(const ImportedModel&, const ImportedModel&) = default;
};

/// Combines an exported program and its layers. Throws InputError unless all inputs have the batch
/// as their first dimension.
ImportedModel imported_model(const std::filesystem::path& archive, ExportedProgram program,
                             ExportedLayers layers);

/// Reads the folder's layers.json and the archive that it names. Throws InputError that names the
/// file.
ImportedModel read_imported(const std::filesystem::path& folder);

/// Returns layers.json: the name of each layer and its last operator.
Json layers_json(const ImportedModel& model);

/// Returns a model of one operator without weights, which a shape without a folder uses.
std::shared_ptr<const ImportedModel> plain_import();

struct ImportedShape {
  static constexpr auto kind = "imported";
  std::string path;  // the folder; absolute once a scenario was read
  std::shared_ptr<const ImportedModel> model = plain_import();
  friend bool operator==(const ImportedShape& a, const ImportedShape& b) {
    return a.path == b.path && (a.model == b.model || *a.model == *b.model);
  }
};
template <>
const ModelDescriptor& descriptor_of<ImportedShape>();

Sample sample_of_import(const ImportedModel& model);

}  // namespace pipewright::plan
