#pragma once

// The parts that make a model trainable: its layers, its data and its loss. A model's file in
// src/models ends with
//
//   template <>
//   const ModelBuilder& builder_of<plan::GptShape>() {
//     static const ModelBuilder gpt = declare_builder<plan::GptShape>({.layers = …});
//     return gpt;
//   }

#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "pipewright/exec/data/dataset.hpp"
#include "pipewright/exec/training/group_sums.hpp"
#include "pipewright/exec/training/layer_spec.hpp"
#include "pipewright/plan/model/model_shape.hpp"

namespace pipewright::engine {

/// Options of the layers to build, in addition to the model's sizes.
struct LayerChoice {
  int seed = 0;  // seed of the layers' random numbers
  exec::Tokens tokens = exec::Tokens::Whole;
};

struct ModelBuilder {
  /// Builds the layers that `plan::model_of` describes.
  std::function<std::vector<exec::LayerSpec>(const plan::ModelShape&, const LayerChoice&)> layers;
  /// Opens the data at a path. Throws InputError if they do not fit the model.
  std::function<std::unique_ptr<exec::Dataset>(
      const plan::ModelShape&, const std::filesystem::path&, const exec::BatchShape&)>
      open;
  std::function<exec::Loss(const plan::ModelShape&)> loss;
  bool dynamic_shapes = false;  // tensors may differ in shape between microbatches
};

/// A ModelBuilder for one type of shape. The loss defaults to cross entropy.
template <class Shape>
struct BuilderDeclaration {
  std::vector<exec::LayerSpec> (*layers)(const Shape&, const LayerChoice&);
  std::unique_ptr<exec::Dataset> (*open)(const Shape&, const std::filesystem::path&,
                                         const exec::BatchShape&);
  exec::Loss (*loss)(const Shape&) = [](const Shape&) -> exec::Loss { return exec::cross_entropy; };
};

template <class Shape>
ModelBuilder declare_builder(const BuilderDeclaration<Shape>& declared) {
  return {
      .layers = [layers = declared.layers](
                    const plan::ModelShape& shape,
                    const LayerChoice& choice) { return layers(shape.as<Shape>(), choice); },
      .open = [open = declared.open](
                  const plan::ModelShape& shape, const std::filesystem::path& path,
                  const exec::BatchShape& batch) { return open(shape.as<Shape>(), path, batch); },
      .loss = [loss = declared.loss](
                  const plan::ModelShape& shape) { return loss(shape.as<Shape>()); }};
}

/// Every model of `plan::model_kinds()` defines its own specialization; a missing one is a link
/// error.
template <class Shape>
const ModelBuilder& builder_of();

/// Registers the builder of a model that is not in `plan`'s own list.
void add_builder(const plan::ModelDescriptor& model, ModelBuilder builder);

/// Returns the builder of a model. Throws InputError for a model that was declared to `plan` only.
const ModelBuilder& builder_of(const plan::ModelShape& shape);

}  // namespace pipewright::engine
