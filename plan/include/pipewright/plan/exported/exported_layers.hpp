#pragma once

// An exported graph as layers: runs of its operators, one behind the other. What a later layer
// needs of an earlier one is handed on by all in between, so that any border between two of them
// can be one between stages.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/exported/exported_program.hpp"
#include "pipewright/plan/json/json.hpp"

namespace pipewright::plan {

struct ExportedLayer {
  std::string name;
  std::vector<int> nodes;    // in the graph's order
  std::vector<int> inputs;   // values that come in, by their number in the graph
  std::vector<int> outputs;  // the next layer's inputs; of the last one, what the loss is of
  std::vector<int> weights;  // places in ExportedProgram::weights
  /// Of these, in the same order, the parameters that it shares with the layers of the same key.
  std::vector<int> tied{};
  std::string tied_key{};
  friend bool operator==(const ExportedLayer&, const ExportedLayer&) = default;
};

/// What computes the loss from the last layer's outputs and the targets: a layer without a border.
/// No nodes: the module has no loss.
struct ExportedLayers {
  std::vector<ExportedLayer> layers;
  ExportedLayer loss;
  friend bool operator==(const ExportedLayers&, const ExportedLayers&) = default;
};

/// Where layers begin and end.
enum class LayersBy {
  Modules,  // the modules of a list, such as "h.3", and what stands before and behind them
  Marks,    // where the module calls `pipe_split`
  Bytes     // where few bytes cross, in so many parts
};
const std::vector<std::string>& layers_by_words();  // modules, marks

struct LayerBorders {
  LayersBy by = LayersBy::Modules;
  int count = 0;  // of layers, by bytes
  /// Qualified names of modules: a layer begins with the first operator of it, or ends with the
  /// last. With any, these are the only borders.
  std::vector<std::string> before{}, after{};
};

/// Throws InputError for a name that no module has, with the nearest; for a border that nothing can
/// cross, such as one between a tensor and what changes it in place; for marks that there are none
/// of.
ExportedLayers layers_of(const ExportedProgram& program, const LayerBorders& borders = {});

/// The layers of a list that was written: where each ends. Throws InputError as above.
ExportedLayers layers_at(const ExportedProgram& program, const std::vector<std::string>& names,
                         const std::vector<std::string>& last_nodes);

/// Bytes that pass from each layer to the next, with the batch that was exported.
std::int64_t crossing_bytes(const ExportedProgram& program, const ExportedLayer& layer);

}  // namespace pipewright::plan
