#pragma once

// Layers of a module that PyTorch exported. Operators are called through LibTorch's dispatcher, by
// name and overload, so every operator that LibTorch can differentiate can be trained.

#include <memory>
#include <vector>

#include "pipewright/engine/models/weight_files.hpp"
#include "pipewright/exec/training/layer_spec.hpp"
#include "pipewright/plan/model/imported_model.hpp"

namespace pipewright::engine {

/// Returns layers for PipelineModule and TrainingSetup, which start with the archive's weights.
/// Dropout uses a generator of the layer's own, seeded by `seed`, layer, step and microbatch.
/// Throws InputError that names operators that no loaded library provides, with the user's source
/// line.
std::vector<exec::LayerSpec> imported_layers(
    const std::shared_ptr<const plan::ImportedModel>& model, int seed);

/// Returns the loss that was exported with the module, or cross entropy if there was none.
exec::Loss imported_loss(const std::shared_ptr<const plan::ImportedModel>& model);

/// Writes the weights and buffers of a trained model under the module's names. A weight with
/// several names gets the first. Throws InputError if a layer is not the model's.
void write_imported(const plan::ImportedModel& model, const ReadLayer& layers,
                    const std::filesystem::path& out);

}  // namespace pipewright::engine
