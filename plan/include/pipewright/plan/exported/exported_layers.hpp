#pragma once

// An exported graph divided into layers: consecutive runs of its operators. A value that a later
// layer needs of an earlier one passes through all layers in between, so that any layer boundary
// can be a stage boundary.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/exported/exported_program.hpp"
#include "pipewright/plan/json/json.hpp"

namespace pipewright::plan {

/// One layer of an exported graph.
struct ExportedLayer {
  std::string name;
  std::vector<int> nodes;    // in the graph's order
  std::vector<int> inputs;   // input values, by their number in the graph
  std::vector<int> outputs;  // the next layer's inputs; for the last layer, the loss's inputs
  std::vector<int> weights;  // indices into ExportedProgram::weights
  /// The tied parameters among these, in an order common to all layers with the same key.
  std::vector<int> tied{};
  std::string tied_key{};
  friend bool operator==(const ExportedLayer&, const ExportedLayer&) = default;
};

/// The layers, and the loss, which takes the last layer's outputs and the targets. The loss has no
/// nodes if the module has no loss.
struct ExportedLayers {
  std::vector<ExportedLayer> layers;
  ExportedLayer loss;
  friend bool operator==(const ExportedLayers&, const ExportedLayers&) = default;
};

/// Criterion for layer boundaries.
enum class LayersBy {
  Modules,  // the modules of a list, such as "h.3", and what is before and after them
  Marks,    // at calls of `pipe_split` in the module
  Bytes     // at places with few boundary bytes, into `count` parts
};
const std::vector<std::string>& layers_by_words();  // modules, marks

/// The requested layer boundaries.
struct LayerBoundaries {
  LayersBy by = LayersBy::Modules;
  int count = 0;  // number of layers, for LayersBy::Bytes
  /// Qualified names of modules: a layer begins with the module's first operator, or ends with its
  /// last. If any are given, there are no other boundaries.
  std::vector<std::string> before{}, after{};
};

/// Divides an exported graph into layers. Throws InputError for an unknown module name, with the
/// nearest known one; for an impossible boundary, such as between a tensor and an operator that
/// changes it in place; and for LayersBy::Marks if there are no marks.
ExportedLayers layers_of(const ExportedProgram& program, const LayerBoundaries& borders = {});

/// Returns the layers of a stored list, given the last operator of each. Throws InputError as
/// above.
ExportedLayers layers_at(const ExportedProgram& program, const std::vector<std::string>& names,
                         const std::vector<std::string>& last_nodes);

/// Returns the bytes that this layer passes to the next, with the exported batch size.
std::int64_t crossing_bytes(const ExportedProgram& program, const ExportedLayer& layer);

}  // namespace pipewright::plan
