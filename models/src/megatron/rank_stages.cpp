#include "rank_stages.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/split.hpp"

namespace pipewright::models::megatron {
namespace {

/// Returns a standard layer of a decoder or an encoder.
Layer usual_layer(const plan::TransformerConfig& model, int layer) {
  return {{Part::Attention, model.has_experts(layer) ? Part::Experts : Part::FeedForward}};
}

Layer layer_of_letter(char letter, const std::string& pattern) {
  switch (letter) {
    case 'M':
      return {{Part::Mamba}};
    case '*':
      return {{Part::Attention}};
    case '-':
      return {{Part::FeedForward}};
    case 'E':
      return {{Part::Experts}};
  }
  throw plan::InputError(
      fmt::format("hybrid-layer-pattern \"{}\": unknown layer \"{}\": M, *, - and E are supported",
                  pattern, letter));
}

std::vector<Layer> layers_of(const std::string& letters, const std::string& pattern) {
  std::vector<Layer> layers;
  for (const char letter : letters)
    layers.push_back(layer_of_letter(letter, pattern));
  return layers;
}

/// Splits the letters into stages: at `|`, or else evenly.
std::vector<std::string> pattern_stages(const std::string& letters, int stages) {
  if (letters.find('|') != std::string::npos)
    return plan::split(letters, '|');
  const int count = static_cast<int>(letters.size());
  if (count % stages != 0)
    throw plan::InputError(
        fmt::format("hybrid-layer-pattern has {} layers, which do not divide evenly among {} "
                    "stages: separate them with |",
                    count, stages));
  std::vector<std::string> cut;
  for (int stage = 0; stage < stages; ++stage)
    cut.push_back(letters.substr(static_cast<std::size_t>(stage * (count / stages)),
                                 static_cast<std::size_t>(count / stages)));
  return cut;
}

std::vector<RankStage> hybrid_stages(const MegatronRun& run) {
  const std::string& pattern = run.layer_pattern;
  auto sections = plan::split(pattern, '/');
  const auto letters = pattern_stages(sections.front(), run.cut.stages());
  std::vector<RankStage> stages;
  for (const std::string& stage : letters)
    stages.push_back({.layers = layers_of(stage, pattern)});
  for (std::size_t depth = 1; depth < sections.size() && !stages.empty(); ++depth)
    stages.back().predictions.push_back(layers_of(sections[depth], pattern));
  return stages;
}

/// Adds predictions, each of which has one more layer like the model's last.
void add_predictions(RankStage& stage, const plan::TransformerConfig& model) {
  for (int depth = 0; depth < model.predictions; ++depth)
    stage.predictions.push_back({usual_layer(model, model.layers - 1)});
}

std::vector<RankStage> counted_stages(const MegatronRun& run) {
  const plan::TransformerConfig& model = run.training.model;
  std::vector<RankStage> stages(static_cast<std::size_t>(run.cut.stages()));
  int layer = 0;
  for (int stage = 0; stage < run.cut.stages(); ++stage)
    for (int i = 0; i < run.cut.layers_of(stage, model.layers); ++i)
      stages[static_cast<std::size_t>(stage)].layers.push_back(usual_layer(model, layer++));
  if (layer != model.layers)
    throw plan::InputError(
        fmt::format("{} of the model's {} layers are on stages", layer, model.layers));
  add_predictions(stages.back(), model);
  return stages;
}

/// Returns T5's single stage: the encoder's layers, then the same number of decoder layers.
std::vector<RankStage> encoder_decoder_stages(const MegatronRun& run) {
  if (run.cut.stages() > 1)
    throw plan::InputError("pp: an encoder and a decoder on several stages are not supported");
  RankStage stage;
  for (int layer = 0; layer < run.training.model.layers; ++layer)
    stage.layers.push_back({{Part::Attention, Part::FeedForward}});
  for (int layer = 0; layer < run.training.model.layers; ++layer)
    stage.layers.push_back({{Part::Attention, Part::CrossAttention, Part::FeedForward}, true});
  return {stage};
}

std::vector<RankStage> all_stages(const MegatronRun& run) {
  switch (run.family) {
    case MegatronFamily::EncoderDecoder:
      return encoder_decoder_stages(run);
    case MegatronFamily::Hybrid:
      return hybrid_stages(run);
    case MegatronFamily::Decoder:
    case MegatronFamily::Encoder:
      return counted_stages(run);
  }
  return {};
}

}  // namespace

std::vector<RankStage> rank_stages(const MegatronRun& run) {
  auto stages = all_stages(run);
  if (static_cast<int>(stages.size()) != run.cut.stages())
    throw plan::InputError(
        fmt::format("hybrid-layer-pattern has {} stages, but pp {} with {} chunks has {}",
                    stages.size(), run.cut.pipeline, run.cut.chunks, run.cut.stages()));
  stages.front().embedding = true;
  stages.back().loss = true;
  std::vector<RankStage> own;
  for (int chunk = 0; chunk < run.cut.chunks; ++chunk)
    own.push_back(stages[static_cast<std::size_t>(chunk * run.cut.pipeline + run.rank)]);
  return own;
}

}  // namespace pipewright::models::megatron
