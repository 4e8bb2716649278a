// Transformers from a config.json or from Megatron-LM's arguments: accepted sizes can be counted,
// partitioned and written as a model.

#include <cmath>
#include <string_view>

#include "json_text.hpp"
#include "pipewright/models/trainers/megatron_arguments.hpp"
#include "pipewright/plan/model/hugging_face.hpp"
#include "pipewright/plan/model/transformer_layers.hpp"
#include "reader.hpp"

namespace transformer_fuzz {

using namespace pipewright::plan;
using namespace pipewright::models;
using pipewright::fuzz::accepted;
using pipewright::fuzz::demand;
using pipewright::fuzz::document_of;

void count(const TransformerTraining& training, const Cut& cut) {
  if (!faults_of(training, cut).empty())
    return;
  const auto layers = layers_of(training, cut);
  for (const TransformerLayer& layer : layers) {
    demand(layer.parameters > 0 && layer.device_parameters > 0, "a layer has parameters");
    demand(layer.expert_parameters <= layer.parameters,
           "expert parameters do not exceed all parameters");
    demand(layer.active_parameters <= layer.parameters,
           "active parameters do not exceed all parameters");
    demand(std::isfinite(layer.forward_flops()) && layer.forward_flops() >= 0,
           "FLOPs are a number");
    demand(layer.kept_full <= layer.kept && layer.kept_selective <= layer.kept,
           "recomputation keeps no more");
  }
  demand(total_of(layers).parameters > 0, "the total is positive");
}

void try_text(std::string_view text) {
  const bool is_json = text.find_first_not_of(" \t\r\n") != std::string_view::npos &&
                       text[text.find_first_not_of(" \t\r\n")] == '{';
  const auto transformer = accepted([&] {
    return is_json
               ? DescribedTransformer{.training = {.model =
                                                       transformer_from_config(document_of(text)),
                                                   .sequence = 64},
                                      .cut = {}}
               : transformer_from_megatron(text, "fuzz");
  });
  if (!transformer || transformer->training.model.layers > 200)  // many layers take too long
    return;
  const TransformerConfig& config = transformer->training.model;
  const Rotary& rotary = config.rotary;
  demand(rotary.base > 0 && rotary.factor > 0 && rotary.share > 0 && rotary.share <= 1,
         "RoPE has valid frequencies");
  demand(std::isfinite(rotary.magnitude) && rotary.magnitude > 0, "the RoPE magnitude is positive");
  demand(std::isfinite(config.score_scale) && config.score_scale >= 0,
         "the score scale is not negative");
  demand(
      config.windowed.empty() || config.windowed.size() == static_cast<std::size_t>(config.layers),
      "windows are given for all layers or none");
  count(transformer->training, transformer->cut);
  count({.model = config, .sequence = 64}, {.tensor = 2, .sequence_parallel = true});
  count({.model = config, .sequence = 64}, {.context = 4, .expert = 2, .microbatch = 3});
  const Model model = transformer_model(config, 1);
  demand(model.layers.size() == static_cast<std::size_t>(config.layers) + 2,
         "a model has its layers");
}

const pipewright::fuzz::Reader reader("transformer", try_text);

}  // namespace transformer_fuzz
