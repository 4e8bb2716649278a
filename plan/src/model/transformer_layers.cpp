#include "pipewright/plan/model/transformer_layers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/plan/error.hpp"
#include "transformer_weights.hpp"

namespace pipewright::plan {
namespace {

constexpr double value_bytes = 2;  // bytes of an activation or a weight
constexpr double mask_bytes = 1;   // bytes of an element of a dropout mask
constexpr double kept_logit = 4;   // bytes of a logit, in single precision
constexpr double kept_score = 2;   // bytes of a score after the softmax
constexpr double kept_masked_score =
    5;  // the same with dropout, which adds a mask and the masked scores

std::int64_t whole(double count) { return static_cast<std::int64_t>(count); }

class LayerCounting {
 public:
  LayerCounting(const TransformerTraining& training, const Cut& cut)
      : training_(training),
        c_(training.model),
        cut_(cut),
        t_(cut.tensor),
        tokens_cut_(cut.sequence_parallel ? t_ : 1),
        tokens_(1.0 * cut.microbatch * training.sequence / cut.context) {}

  TransformerLayer embedding() const {
    auto layer = made(TransformerLayerKind::Embedding, weights_of_embedding(c_, cut_.tensor));
    count(layer, weights_of_embedding(c_, 1));
    layer.name = "embedding";
    const double kept = c_.dropout ? mask_bytes * c_.hidden / tokens_cut_ : 0;
    keep(layer, kept, kept, kept);
    return layer;
  }

  TransformerLayer block(int index) const {
    const bool sparse = c_.has_experts(index);
    auto layer = made(sparse ? TransformerLayerKind::Mixture : TransformerLayerKind::Dense,
                      weights_of_layer(c_, sparse));
    layer.name = fmt::format("layer{}", index);
    layer.attention_flops = attention_flops(index);
    keep(layer, block_bytes(sparse) + scores(index), block_bytes(sparse), input_bytes());
    return layer;
  }

  /// Returns a multi-token-prediction module: two norms and their projection, a transformer layer,
  /// and another use of the head (DeepSeek-V3, arXiv 2412.19437).
  TransformerLayer prediction(int index) const {
    const int last = c_.layers - 1;
    const bool sparse = c_.has_experts(last);
    auto layer = made(TransformerLayerKind::Prediction, weights_of_prediction(c_));
    layer.name = fmt::format("prediction{}", index);
    layer.attention_flops = attention_flops(last);
    const auto head = weights_of_head(c_, cut_.tensor);
    layer.product_flops += tokens_ * weight_total(head, cut_).token_flops;
    const double ends = 4 * value_bytes * c_.hidden / tokens_cut_ + head_bytes();
    keep(layer, ends + block_bytes(sparse) + scores(last), ends + block_bytes(sparse),
         ends + input_bytes());
    return layer;
  }

  TransformerLayer head() const {
    auto layer = made(TransformerLayerKind::Head, weights_of_head(c_, cut_.tensor));
    count(layer, weights_of_head(c_, 1));
    layer.name = "head";
    keep(layer, head_bytes(), head_bytes(), head_bytes());
    layer.output = whole_bytes(tokens_ * kept_logit * padded_vocabulary(c_, cut_.tensor) / t_);
    return layer;
  }

 private:
  TransformerLayer made(TransformerLayerKind kind, const std::vector<Weight>& weights) const {
    const WeightTotal sum = weight_total(weights, cut_, c_.kv_heads);
    TransformerLayer layer;
    layer.kind = kind;
    count(layer, weights);
    layer.device_parameters = whole(sum.device_parameters);
    layer.device_expert_parameters = whole(sum.device_expert_parameters);
    layer.weights = whole_bytes(value_bytes * sum.device_parameters);
    layer.product_flops = tokens_ * sum.token_flops;
    layer.expert_flops = tokens_ * sum.expert_token_flops;
    layer.output = whole_bytes(tokens_ * input_bytes());
    return layer;
  }

  /// Counts the parameters of the whole model, for which the vocabulary need not divide evenly.
  static void count(TransformerLayer& layer, const std::vector<Weight>& weights) {
    const WeightTotal sum = weight_total(weights, {});
    layer.parameters = whole(sum.parameters);
    layer.expert_parameters = whole(sum.expert_parameters);
    layer.active_parameters = whole(sum.active_parameters);
    layer.tied_parameters = whole(sum.tied_parameters);
  }

  void keep(TransformerLayer& layer, double none, double selective, double full) const {
    layer.kept = whole_bytes(tokens_ * none);
    layer.kept_selective = whole_bytes(tokens_ * selective);
    layer.kept_full = whole_bytes(tokens_ * full);
  }

  /// Returns the FLOPs of queries with keys and of scores with values. Those of masked, later
  /// tokens are included.
  double attention_flops(int index) const {
    const double channels = 1.0 * c_.head_channels + c_.rope_channels + c_.value_channels;
    return 2 * tokens_ * c_.seen(index, training_.sequence) * c_.heads / t_ * channels;
  }

  // The following return bytes per token.
  double input_bytes() const { return value_bytes * c_.hidden / tokens_cut_; }

  double scores(int index) const {
    if (training_.attention == AttentionKind::Fused)
      return 0;
    return (c_.dropout ? kept_masked_score : kept_score) * c_.heads *
           c_.seen(index, training_.sequence) / t_;
  }

  /// Returns the saved inputs and outputs of norms, inputs of the matrix products in attention and
  /// feed-forward, and masks.
  double block_bytes(bool sparse) const {
    const double norms =
        ((c_.post_norms ? 8 : 4) * value_bytes + (c_.dropout ? 2 * mask_bytes : 0)) * c_.hidden /
        tokens_cut_;
    const double routed = sparse ? value_bytes * c_.experts_per_token * c_.hidden : 0;
    const double width =
        sparse ? 1.0 * c_.shared_feed_forward + 1.0 * c_.experts_per_token * c_.expert_feed_forward
               : 1.0 * c_.feed_forward;
    return norms + attention_bytes() + routed + value_bytes * (c_.gated ? 3 : 2) * width / t_;
  }

  double attention_bytes() const {
    const double a = c_.heads, d = c_.head_channels, v = c_.value_channels, r = c_.rope_channels;
    if (c_.is_latent()) {
      const double times = c_.latent_norms ? 2 : 1;
      const double latent = times * (1.0 * c_.q_rank + c_.kv_rank) + r;
      return value_bytes * (latent / tokens_cut_ + a * (2 * (d + r) + 2 * v) / t_);
    }
    const double keys = std::max(c_.kv_heads / t_, 1.0);
    const double normed = c_.head_norms ? d * (a / t_ + keys) : 0;
    return value_bytes * ((d + v) * (a / t_ + keys) + normed);
  }

  double head_bytes() const {
    return 2 * value_bytes * c_.hidden / tokens_cut_ +
           kept_logit * padded_vocabulary(c_, cut_.tensor) / t_;
  }

  const TransformerTraining& training_;
  const TransformerConfig& c_;
  const Cut& cut_;
  const double t_;
  const double tokens_cut_;
  const double tokens_;
};

bool cuts_heads(const TransformerConfig& config, int tensor) {
  if (config.heads % tensor != 0)
    return false;
  return config.is_latent() || config.kv_heads % tensor == 0 || tensor % config.kv_heads == 0;
}

bool cuts_widths(const TransformerConfig& config, int tensor) {
  return config.feed_forward % tensor == 0 && config.expert_feed_forward % tensor == 0 &&
         config.shared_feed_forward % tensor == 0 && config.hidden % tensor == 0;
}

const char* kind_word(TransformerLayerKind kind) {
  switch (kind) {
    case TransformerLayerKind::Embedding:
      return "embedding";
    case TransformerLayerKind::Dense:
      return "transformer-block";
    case TransformerLayerKind::Mixture:
      return "mixture-block";
    case TransformerLayerKind::Prediction:
      return "prediction";
    case TransformerLayerKind::Head:
      return "norm-and-head";
  }
  return "";
}

}  // namespace

std::string to_string(TransformerLayerKind kind) { return kind_word(kind); }

Bytes TransformerLayer::kept_under(RecomputeMode mode) const {
  switch (mode) {
    case RecomputeMode::None:
      return kept;
    case RecomputeMode::Selective:
      return kept_selective;
    case RecomputeMode::Full:
      return kept_full;
  }
  return kept;
}

namespace {

void add_tensor_faults(const TransformerConfig& config, const Cut& cut,
                       std::vector<CutFault>& faults) {
  const auto tensor_fits = [&](int size) {
    return cuts_heads(config, size) && cuts_widths(config, size);
  };
  if (!tensor_fits(cut.tensor))
    faults.push_back(
        {"tensor",
         fmt::format("a tensor size of {} does not divide {}; {} would do", cut.tensor,
                     cuts_heads(config, cut.tensor)
                         ? fmt::format("all widths ({} and {})", config.hidden,
                                       std::max(config.feed_forward, config.expert_feed_forward))
                     : config.is_latent() ? fmt::format("{} heads", config.heads)
                                          : fmt::format("{} heads, {} of them of keys and values",
                                                        config.heads, config.kv_heads),
                     nearest_sizes(cut.tensor, config.heads, tensor_fits))});
}

void add_expert_faults(const TransformerConfig& config, const Cut& cut,
                       std::vector<CutFault>& faults) {
  const auto expert_fits = [&](int size) { return config.experts % size == 0; };
  if (config.experts == 0 && cut.expert > 1)
    faults.push_back(
        {"expert", fmt::format("an expert size of {} was asked for, but the model has no experts",
                               cut.expert)});
  else if (!expert_fits(cut.expert))
    faults.push_back(
        {"expert",
         fmt::format("an expert size of {} does not divide {} experts; {} would do", cut.expert,
                     config.experts, nearest_sizes(cut.expert, config.experts, expert_fits))});
}

void add_sequence_faults(const TransformerTraining& training, const Cut& cut,
                         std::vector<CutFault>& faults) {
  const TransformerConfig& config = training.model;
  const auto context_fits = [&](int size) { return training.sequence % size == 0; };
  if (!context_fits(cut.context))
    faults.push_back(
        {"context",
         fmt::format("a context size of {} does not divide a sequence of {}; {} would do",
                     cut.context, training.sequence,
                     nearest_sizes(cut.context, training.sequence, context_fits))});
  else if (cut.sequence_parallel && training.sequence / cut.context % cut.tensor != 0)
    faults.push_back({"sequence_parallel",
                      fmt::format("{} tokens of a device do not divide among the {} that cut them "
                                  "between tensor cuts",
                                  training.sequence / cut.context, cut.tensor)});
  if (config.learned_positions && training.sequence > config.longest)
    faults.push_back(
        {"", fmt::format("a sequence of {} is longer than the {} positions that it learns",
                         training.sequence, config.longest)});
}

}  // namespace

std::vector<CutFault> faults_of(const TransformerTraining& training, const Cut& cut) {
  std::vector<CutFault> faults;
  add_tensor_faults(training.model, cut, faults);
  add_expert_faults(training.model, cut, faults);
  add_sequence_faults(training, cut, faults);
  if (training.predictions && training.model.predictions == 0)
    faults.push_back({"", "the model has no modules that predict further tokens"});
  return faults;
}

void require_cut(const TransformerTraining& training, const Cut& cut) {
  std::vector<std::string> lines;
  for (const CutFault& fault : faults_of(training, cut))
    lines.push_back(fault.message);
  if (!lines.empty())
    throw InputError(listed_lines(lines));
}

std::vector<TransformerLayer> layers_of(const TransformerTraining& training, const Cut& cut) {
  const TransformerConfig& config = training.model;
  require_cut(training, cut);
  const LayerCounting counting(training, cut);
  std::vector<TransformerLayer> layers{counting.embedding()};
  for (int index = 0; index < config.layers; ++index)
    layers.push_back(counting.block(index));
  for (int index = 0; training.predictions && index < config.predictions; ++index)
    layers.push_back(counting.prediction(index));
  layers.push_back(counting.head());
  return layers;
}

TransformerLayer total_of(const std::vector<TransformerLayer>& layers) {
  TransformerLayer sum;
  for (const TransformerLayer& layer : layers) {
    sum.parameters += layer.parameters - layer.tied_parameters;
    sum.tied_parameters += layer.tied_parameters;
    sum.expert_parameters += layer.expert_parameters;
    sum.active_parameters += layer.active_parameters - layer.tied_parameters;
    sum.device_parameters += layer.device_parameters;
    sum.device_expert_parameters += layer.device_expert_parameters;
    sum.weights += layer.weights;
    sum.product_flops += layer.product_flops;
    sum.expert_flops += layer.expert_flops;
    sum.attention_flops += layer.attention_flops;
    sum.kept += layer.kept;
    sum.kept_selective += layer.kept_selective;
    sum.kept_full += layer.kept_full;
    sum.output += layer.output;
  }
  return sum;
}

std::int64_t parameters_of(const TransformerConfig& config) {
  return total_of(layers_of({.model = config})).parameters;
}

Model transformer_model(const TransformerConfig& config, int sequence) {
  Model model{.name = config.name, .layers = {}};
  const auto layers = layers_of({.model = config, .sequence = sequence});
  for (const TransformerLayer& layer : layers) {
    const bool is_head = layer.kind == TransformerLayerKind::Head;
    Layer plain;
    plain.name = layer.name;
    plain.kind = to_string(layer.kind);
    plain.parameters = layer.parameters;
    plain.parameter_bytes = layer.weights;
    plain.forward_flops = layer.forward_flops();
    plain.output_shape = {sequence, is_head ? config.vocabulary : config.hidden};
    plain.dtype = "bfloat16";
    if (config.tied && (is_head || layer.kind == TransformerLayerKind::Embedding))
      plain.tied_key = "embedding", plain.tied_parameters = layers.back().tied_parameters;
    plain.checkpointable = !is_head && layer.kind != TransformerLayerKind::Embedding;
    model.layers.push_back(std::move(plain));
  }
  return model;
}

}  // namespace pipewright::plan
