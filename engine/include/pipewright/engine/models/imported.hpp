#pragma once

// A module that PyTorch exported, as layers: its operators are called through LibTorch's
// dispatcher, by name and overload, so whatever LibTorch can differentiate is trained.

#include <memory>
#include <vector>

#include "pipewright/engine/models/weight_files.hpp"
#include "pipewright/exec/training/layer_spec.hpp"
#include "pipewright/plan/model/imported_model.hpp"

namespace pipewright::engine {

/// For PipelineModule and TrainingSetup. Layers begin with the archive's weights. What is dropped
/// is drawn from a generator of the layer's own, by `seed`, layer, step and microbatch. Throws
/// InputError that names operators which no loaded library has, with the user's line.
std::vector<exec::LayerSpec> imported_layers(
    const std::shared_ptr<const plan::ImportedModel>& model, int seed);

/// The loss that was exported with the module; cross entropy where none was.
exec::Loss imported_loss(const std::shared_ptr<const plan::ImportedModel>& model);

/// Writes the weights and buffers of a trained one, by the names that the module has for them. Of a
/// weight with several names, the first. Throws InputError where a layer is not the model's.
void write_imported(const plan::ImportedModel& model, const ReadLayer& layers,
                    const std::filesystem::path& out);

}  // namespace pipewright::engine
