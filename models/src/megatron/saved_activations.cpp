#include "saved_activations.hpp"

#include <algorithm>

#include "software_dates.hpp"

namespace pipewright::models::megatron {
namespace {

/// Returns the number of tokens at a rank's experts, relative to the mean, for the worst
/// microbatch. The variation is larger with one expert per token than with several.
double most_tokens(const MegatronRun& run) {
  const double worst = run.training.model.experts_per_token == 1 ? 1.2 : 1.1;
  return run.expert_capacity > 0 ? std::min(worst, run.expert_capacity) : worst;
}

/// Collects the saved activations of a part of a layer by name.
class PartKept {
 public:
  PartKept(const MegatronRun& run, bool decodes)
      : run_(run), model_(run.training.model), tokens_(tokens_of(run, decodes)) {}

  MemoryByName of(Part part) {
    add_norm_input();
    switch (part) {
      case Part::Attention:
        attention();
        break;
      case Part::CrossAttention:
        cross_attention();
        break;
      case Part::FeedForward:
        feed_forward();
        break;
      case Part::Experts:
        experts();
        break;
      case Part::Mamba:
        mamba();
        break;
    }
    if (model_.dropout)
      kept_.add("dropout masks", share());
    kept_.add("statistics of norms",
              tokens_.share * (model_.norm == plan::NormKind::Layer ? 8 : 4));
    return kept_;
  }

 private:
  bool again(const char* module) const {
    return run_.cut.recompute == plan::RecomputeMode::Selective &&
           run_.recompute_modules.count(module) > 0;
  }
  /// Return the bytes of a number, and of a number that a product saves of its input.
  long long wide() const { return run_.precision == MegatronPrecision::Full ? 4 : 2; }
  long long cast() const { return run_.precision == MegatronPrecision::Float8 ? 1 : wide(); }
  bool is_float8() const { return run_.precision == MegatronPrecision::Float8; }
  /// Returns the number of elements of a hidden state between layers.
  long long share() const { return tokens_.share * model_.hidden; }
  long long of_tensor(long long channels) const { return channels / run_.cut.tensor; }

  void add_norm_input() { kept_.add("norm inputs", share() * (run_.wide_residual ? 4 : wide())); }
  void add_norm_output(long long bytes_each) { kept_.add("norm outputs", share() * bytes_each); }

  void attention() {
    if (model_.is_latent())
      latent_products();
    else
      whole_products();
    const long long values = of_tensor(
        1LL * model_.heads * (model_.is_latent() ? model_.value_channels : model_.head_channels));
    core(tokens_.whole * values);
    if (has_scores())
      kept_.add("scores", scores(tokens_.whole / run_.cut.microbatch) * bytes_of_score());
  }

  void whole_products() {
    const long long queries = 1LL * model_.heads * model_.head_channels,
                    keys = 1LL * model_.kv_heads * model_.head_channels;
    add_norm_output(cast());
    kept_.add("queries, keys, values", wide() * tokens_.whole * of_tensor(queries + 2 * keys));
    const AttentionBackend backend = attention_of(run_);
    const bool whole_scores =
        backend == AttentionBackend::Unfused || backend == AttentionBackend::Local;
    if (whole_scores &&
        queries > keys)  // keys and values once more, repeated for each query's head
      kept_.add("queries, keys, values", wide() * tokens_.whole * of_tensor(2 * queries));
    if (model_.head_norms)
      kept_.add("queries, keys, values", wide() * tokens_.whole * of_tensor(queries + keys));
  }

  /// Two products start from the norm's output, so fp8 saves two casts of it.
  void latent_products() {
    if (!again("layernorm"))
      add_norm_output(2);
    const long long ranks = model_.q_rank + model_.kv_rank;
    kept_.add("latent queries, keys", wide() * tokens_.share * ranks);
    if (again("mla_up_proj"))
      return;
    kept_.add("latent queries, keys", cast() * tokens_.share * ranks);
    const long long query = model_.head_channels + model_.rope_channels;
    kept_.add("queries, keys, values",
              wide() * tokens_.whole *
                  of_tensor(1LL * model_.heads * (2 * query + model_.value_channels)));
  }

  /// Saves the attention output, `numbers` of them, for the kernel. If the following product uses a
  /// cast or a transposed copy, that is saved as well.
  void core(long long numbers) {
    const AttentionBackend backend = attention_of(run_);
    const bool in_one_kernel =
        backend == AttentionBackend::Flash || backend == AttentionBackend::Fused;
    kept_.add("attention outputs", numbers * cast());
    if (!in_one_kernel)
      return;
    if (is_float8())
      kept_.add("attention outputs", numbers * wide());
    else if (backend == AttentionBackend::Flash && copies_layout())
      kept_.add("attention outputs", numbers * wide());
    kept_.add("statistics of scores", 4 * tokens_.whole * of_tensor(model_.heads));
  }
  /// Returns true if the layout is copied: FlashAttention has the sample dimension first and
  /// Megatron the token dimension, unless there is only one sample. Latent attention uses cuDNN.
  bool copies_layout() const { return run_.cut.microbatch > 1 && !model_.is_latent(); }

  bool has_scores() const {
    const AttentionBackend backend = attention_of(run_);
    const bool all_selective =
        run_.cut.recompute == plan::RecomputeMode::Selective && run_.recompute_modules.empty();
    return (backend == AttentionBackend::Unfused || backend == AttentionBackend::Local) &&
           !again("core_attn") && !all_selective;
  }
  long long scores(long long keys) const {
    return tokens_.whole * keys * run_.cut.context * of_tensor(model_.heads);
  }
  /// Returns the bytes of the softmax's output and, with dropout, of the mask and the result.
  long long bytes_of_score() const {
    const long long softmax = run_.fused_softmax ? wide() : 4;
    return softmax + (run_.attention_dropout ? 1 + wide() : 0);
  }

  /// Adds keys and values of the encoder's tokens. FlashAttention packs copies of them without
  /// padding.
  void cross_attention() {
    const long long queries = 1LL * model_.heads * model_.head_channels,
                    keys = 1LL * model_.kv_heads * model_.head_channels;
    const long long encoded = tokens_of(run_).whole;
    const long long packed = attention_of(run_) == AttentionBackend::Flash ? 2 : 1;
    add_norm_output(cast());
    kept_.add("queries, keys, values", wide() * (tokens_.whole * of_tensor(queries) +
                                                 packed * encoded * of_tensor(2 * keys)));
    core(tokens_.whole * of_tensor(queries));
    if (has_scores())
      kept_.add("scores", scores(encoded / run_.cut.microbatch) * bytes_of_score());
  }

  long long gates() const { return model_.gated ? 2 : 1; }
  /// Returns the number of saved inputs of the activation, and of separately multiplied gates.
  long long activation_inputs() const { return gates() + (model_.gated && !run_.fused_activation); }

  void feed_forward() {
    if (again("mlp"))
      return;
    add_norm_output(cast());
    kept_.add("feed-forward", tokens_.whole * of_tensor(model_.feed_forward) *
                                  (wide() * activation_inputs() + cast()));
  }

  void experts() {
    if (!again("layernorm"))
      add_norm_output(wide());
    if (again("moe"))
      return;
    routed_experts();
    if (model_.shared_feed_forward > 0 && !again("shared_experts"))
      shared_experts();
    kept_.add("router", 8 * tokens_.share * model_.experts);
  }

  void routed_experts() {
    const auto tokens = static_cast<long long>(
        static_cast<double>(tokens_.share * model_.experts_per_token * run_.cut.expert_cut()) *
        most_tokens(run_));
    const long long within = tokens * model_.expert_feed_forward / run_.cut.expert_cut();
    kept_.add("experts", cast() * tokens * model_.hidden);
    kept_.add("experts", wide() * within * activation_inputs());
    if (!again("moe_act"))
      kept_.add("experts", cast() * within);
    if (run_.date < weights_within_experts)
      kept_.add("experts", wide() * tokens * model_.hidden);
    else if (!weights_in_activation() && !again("moe_act"))
      kept_.add("experts", wide() * within);
  }
  /// Returns true if the activation kernel multiplies by the router's weights.
  bool weights_in_activation() const { return model_.gated || run_.fused_weighted_activation; }

  void shared_experts() {
    kept_.add("shared experts", tokens_.whole * of_tensor(model_.shared_feed_forward) *
                                    (wide() * activation_inputs() + cast()));
    if (is_float8())
      kept_.add("shared experts", share());
  }

  /// Saves the scan's input from the first product, the scan's output before and after its gate,
  /// and the input of the last product.
  void mamba() {
    const MambaSizes& sizes = run_.mamba;
    const long long width = sizes.width();
    const long long in = 2 * width + 2LL * sizes.groups * sizes.states + sizes.heads;
    add_norm_output(cast());
    kept_.add("Mamba", wide() * tokens_.whole * of_tensor(in + 2 * width));
    kept_.add("Mamba", cast() * tokens_.whole * of_tensor(width));
  }

  const MegatronRun& run_;
  const plan::TransformerConfig& model_;
  const Tokens tokens_;
  MemoryByName kept_;
};

MemoryByName kept_of_layer(const MegatronRun& run, const Layer& layer) {
  MemoryByName kept;
  for (const Part part : layer.parts)
    kept.add(PartKept(run, layer.decodes).of(part), 1);
  return kept;
}

/// Returns the bytes of the gradients of the widest product's input and weight, or of the scores
/// before and after the softmax.
long long work_of_part(const MegatronRun& run, Part part, bool decodes) {
  const plan::TransformerConfig& model = run.training.model;
  if (part == Part::FeedForward) {
    const long long channels = model.feed_forward / run.cut.tensor;
    const long long weight = run.fused_weight_gradients ? 0 : 1LL * model.hidden * channels;
    return hidden_state(run) + 2 * (tokens_of(run, decodes).whole * channels + weight);
  }
  if (part == Part::Attention) {
    const MemoryByName kept = PartKept(run, decodes).of(part);
    return hidden_state(run) + 4 * kept.of("scores") / 5;
  }
  return 0;
}

/// Returns the segments of layers that are recomputed from one input, as in Megatron's uniform
/// method. The block method has segments of one layer, and other layers that save everything.
std::vector<std::vector<Layer>> groups_of(const MegatronRun& run, const RankStage& stage) {
  std::vector<std::vector<Layer>> groups;
  const auto each =
      static_cast<std::size_t>(run.recompute_block ? 1 : std::max(1, run.recompute_layers));
  const std::size_t count =
      run.recompute_block ? std::min<std::size_t>(stage.layers.size(),
                                                  static_cast<std::size_t>(run.recompute_layers))
                          : stage.layers.size();
  for (std::size_t first = 0; first < count; first += each)
    groups.emplace_back(
        stage.layers.begin() + static_cast<std::ptrdiff_t>(first),
        stage.layers.begin() + static_cast<std::ptrdiff_t>(std::min(count, first + each)));
  return groups;
}

MemoryByName kept_of_layers(const MegatronRun& run, const RankStage& stage) {
  MemoryByName kept;
  std::size_t whole_from = 0;
  if (run.cut.recompute == plan::RecomputeMode::Full)
    for (const auto& group : groups_of(run, stage)) {
      kept.add("inputs of layers", hidden_state(run));
      whole_from += group.size();
    }
  for (std::size_t layer = whole_from; layer < stage.layers.size(); ++layer)
    kept.add(kept_of_layer(run, stage.layers[layer]), 1);
  return kept;
}

/// Returns the saved activations of the predictions. Besides its layers, each depth saves
/// embeddings, the inputs and outputs of two norms, the joined state, and that of the last norm.
MemoryByName kept_of_predictions(const MegatronRun& run, const RankStage& stage) {
  MemoryByName kept;
  for (const auto& depth : stage.predictions) {
    for (const Layer& layer : depth)
      kept.add(kept_of_layer(run, layer), 1);
    kept.add("predictions", 6 * hidden_state(run));
  }
  return kept;
}

}  // namespace

AttentionBackend attention_of(const MegatronRun& run) {
  if (!run.transformer_engine || run.attention == AttentionBackend::Local)
    return AttentionBackend::Local;
  if (run.attention != AttentionBackend::Auto)
    return run.attention;
  if (run.deterministic) {
    if (run.date < deterministic_kernels)
      return AttentionBackend::Unfused;
    return run.gpu == GpuKind::Hopper ? AttentionBackend::Fused : AttentionBackend::Flash;
  }
  return run.gpu == GpuKind::Ampere || run.date < cudnn_preferred ? AttentionBackend::Flash
                                                                  : AttentionBackend::Fused;
}

Tokens tokens_of(const MegatronRun& run, bool decodes) {
  const long long sequence = decodes ? run.decoder_sequence : run.training.sequence;
  const long long whole = sequence * run.cut.microbatch / run.cut.context;
  return {whole, run.cut.sequence_parallel ? whole / run.cut.tensor : whole};
}

long long hidden_state(const MegatronRun& run) {
  const bool wide = run.wide_residual || run.precision == MegatronPrecision::Full;
  return tokens_of(run).share * run.training.model.hidden * (wide ? 4 : 2);
}

long long logits_of(const MegatronRun& run) {
  const bool decodes = run.family == MegatronFamily::EncoderDecoder;
  return tokens_of(run, decodes).whole * run.training.model.vocabulary / run.cut.tensor;
}

MemoryByName kept_of_stage(const MegatronRun& run, const RankStage& stage) {
  MemoryByName kept = kept_of_layers(run, stage);
  if (stage.embedding && run.training.model.dropout)
    kept.add("dropout masks", tokens_of(run).share * run.training.model.hidden);
  kept.add(kept_of_predictions(run, stage), 1);
  if (stage.loss)
    kept.add("last norm", 2 * hidden_state(run));
  if (stage.loss && run.family == MegatronFamily::Encoder)
    kept.add("head", 3 * hidden_state(run));
  return kept;
}

long long brought_back(const MegatronRun& run, const RankStage& stage) {
  long long most = 0;
  if (run.cut.recompute == plan::RecomputeMode::Full)
    for (const auto& group : groups_of(run, stage)) {
      long long sum = 0;
      for (const Layer& layer : group)
        sum += kept_of_layer(run, layer).total();
      most = std::max(most, sum);
    }
  return most;
}

long long backward_work(const MegatronRun& run, const RankStage& stage) {
  long long most = 0;
  for (const Layer& layer : stage.layers)
    for (const Part part : layer.parts)
      most = std::max(most, work_of_part(run, part, layer.decodes));
  return most;
}

long long loss_work(const MegatronRun& run, const RankStage& stage) {
  if (!stage.loss)
    return 0;
  const auto depths = static_cast<long long>(stage.predictions.size());
  switch (run.loss_fusion) {
    case LossFusion::None:  // BERT's head adds a bias, which copies the logits
      return logits_of(run) * (6 + 6 * depths + (run.family == MegatronFamily::Encoder ? 2 : 0));
    case LossFusion::Native:
      return logits_of(run) * (10 + 6 * depths);
    case LossFusion::TransformerEngine:
      return logits_of(run) * (4 + 2 * depths);
  }
  return 0;
}

}  // namespace pipewright::models::megatron
