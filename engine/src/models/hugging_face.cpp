// Builds a transformer's layers with the weights of a Hugging Face folder.

#include <memory>

#include "folder_weights.hpp"
#include "pipewright/engine/models/model_builder.hpp"
#include "pipewright/engine/models/transformer.hpp"
#include "pipewright/exec/data/tokens.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::engine {
namespace {

using plan::HuggingFaceShape;

void require_trained(const HuggingFaceShape& shape) {
  for (const std::string& field : shape.untrained)
    throw plan::InputError("training is not supported with model." + field);
}

std::vector<exec::LayerSpec> folder_layers(const HuggingFaceShape& shape,
                                           const LayerChoice& choice) {
  require_trained(shape);
  auto layers = transformer_layers(shape.transformer, choice.tokens);
  auto folder = shape.path.empty() ? std::nullopt : exec::WeightFolder::open(shape.path);
  if (!folder)
    return layers;
  const auto weights = std::make_shared<const FolderWeights>(shape, std::move(*folder));
  for (std::size_t index = 0; index < layers.size(); ++index)
    layers[index].fill = [weights, index](exec::Layer& layer,
                                          const exec::TensorParallelPlace& place) {
      weights->fill(static_cast<int>(index), layer, place);
    };
  return layers;
}

}  // namespace

template <>
const ModelBuilder& builder_of<HuggingFaceShape>() {
  static const ModelBuilder folder = declare_builder<HuggingFaceShape>(
      {.layers = folder_layers,
       .open = [](const HuggingFaceShape& shape, const std::filesystem::path& file,
                  const exec::BatchShape& batch) {
         return exec::open_tokens(file, shape.transformer.sequence,
                                  shape.transformer.config.vocabulary, batch);
       }});
  return folder;
}

}  // namespace pipewright::engine
