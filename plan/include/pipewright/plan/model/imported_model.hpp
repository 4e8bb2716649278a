#pragma once

// A module that PyTorch exported, as the model of a scenario: a folder with the archive and the
// list of the layers that it was cut into, as `pipewright import` writes it.

#include <filesystem>
#include <memory>
#include <string>

#include "pipewright/plan/exported/exported_layers.hpp"
#include "pipewright/plan/exported/exported_program.hpp"
#include "pipewright/plan/model/model_shape.hpp"

namespace pipewright::plan {

struct ImportedModel {
  std::filesystem::path archive;  // the .pt2
  ExportedProgram program;
  ExportedLayers layers;
  int batch = 1;  // samples that it was exported with, and that each microbatch has
  /// What planning needs to know of its layers. FLOPs are those of products and convolutions.
  Model planned{};
  friend bool operator==(const ImportedModel&, const ImportedModel&) = default;
};

/// Throws InputError where inputs do not begin with one batch.
ImportedModel imported_model(const std::filesystem::path& archive, ExportedProgram program,
                             ExportedLayers layers);

/// The folder's layers.json and the archive that it names. Throws InputError that names the file.
ImportedModel read_imported(const std::filesystem::path& folder);

/// layers.json: the name of each layer, and with which operator it ends.
Json layers_json(const ImportedModel& model);

/// One operator without weights: what a shape without a folder has.
std::shared_ptr<const ImportedModel> plain_import();

struct ImportedShape {
  static constexpr auto kind = "imported";
  std::string path;  // the folder; absolute where a scenario was read
  std::shared_ptr<const ImportedModel> model = plain_import();
  friend bool operator==(const ImportedShape& a, const ImportedShape& b) {
    return a.path == b.path && (a.model == b.model || *a.model == *b.model);
  }
};
template <>
const ModelDescriptor& descriptor_of<ImportedShape>();

Sample sample_of_import(const ImportedModel& model);

}  // namespace pipewright::plan
