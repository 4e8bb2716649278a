#include "pipewright/models/transformer/transformer_memory.hpp"

#include <algorithm>

#include "pipewright/models/transformer/transformer_counts.hpp"

namespace pipewright::models {
namespace {

/// Returns the bytes of a parameter with n replicas: two of its own, those of its gradient, and
/// twelve of its master copy and Adam's two states. Each ZeRO stage divides more of them (arXiv
/// 1910.02054).
double parameter_bytes(const plan::TransformerTraining& training, int zero, double copies) {
  constexpr double own = 2, optimizer = 12;
  const double gradient = training.gradient_bytes;
  switch (zero) {
    case 0:
      return own + gradient + optimizer;
    case 1:
      return own + gradient + optimizer / copies;
    case 2:
      return own + (gradient + optimizer) / copies;
    default:
      return (own + gradient + optimizer) / copies;
  }
}

/// Returns the additional bytes of a layer's parameter while ZeRO-3 has it gathered.
double gathered_bytes(const plan::TransformerTraining&, int zero, double copies) {
  return zero < 3 ? 0 : 2 * (1 - 1 / copies);
}

/// The number of layers of a rank.
struct LayerCount {
  int dense = 0, sparse = 0;
  int all() const { return dense + sparse; }
  LayerCount operator*(int times) const { return {dense * times, sparse * times}; }
  LayerCount& operator+=(const LayerCount& other) {
    dense += other.dense, sparse += other.sparse;
    return *this;
  }
};

double tokens_of(const plan::TransformerTraining& training, const plan::Cut& cut) {
  return 1.0 * cut.microbatch * training.sequence / cut.context;
}

/// Returns the bytes of a number that a product saves of its input. It is cast if products use
/// fewer bits; 4-bit numbers have a scale of 8 bits for each 16.
double cast_bytes(plan::ProductPrecision precision) {
  switch (precision) {
    case plan::ProductPrecision::Float8:
      return 1;
    case plan::ProductPrecision::Float4:
      return 0.5 + 1.0 / 16;
    case plan::ProductPrecision::Single:
    case plan::ProductPrecision::Half:
      return 2;
  }
  return 2;
}

/// Returns the bytes that a cast input of attention's last product saves. Fused attention keeps its
/// own output as well, because that is no longer the product's input.
double saved_of_output(const plan::TransformerTraining& training) {
  const double cast = cast_bytes(training.precision);
  if (cast == 2)
    return 0;
  return training.attention == plan::AttentionKind::Fused ? -cast : 2 - cast;
}

/// Returns the bytes that a layer saves per token for the backward, without recomputation and
/// scores.
double kept_of_token(const plan::TransformerTraining& training, const plan::Cut& cut,
                     bool is_dense) {
  const plan::TransformerConfig& model = training.model;
  const double h = model.hidden, t = cut.tensor, d = model.head_channels, a = model.heads;
  const double norms_cut = cut.sequence_parallel ? t : 1;
  const double saved = 2 - cast_bytes(training.precision), of_output = saved_of_output(training);
  if (!model.gated && is_dense && !model.has_mixture())  // Korthikanti et al., arXiv 2205.05198
    return (10 - 2 * saved) * h / norms_cut +
           ((8 - of_output) * h + (4 - saved) * model.feed_forward) / t;
  const double ranks = 1.0 * model.q_rank + model.kv_rank;
  const double attention = model.is_latent()
                               ? ((4 - saved) * ranks + 2.0 * model.rope_channels +
                                  4 * a * (d + model.rope_channels) + (4 - of_output) * a * d) /
                                     t
                               : ((4 - of_output) * a * d + 4.0 * model.kv_heads * d) / t;
  const double width = is_dense ? 1.0 * model.feed_forward
                                : 1.0 * model.shared_feed_forward +
                                      1.0 * model.experts_per_token * model.expert_feed_forward;
  const double routed = is_dense ? 0 : (2 - saved) * model.experts_per_token * h;
  const double gates = model.gated ? 2 : 1, masks = model.dropout ? 2 : 0;
  return (8 + masks - 2 * saved) * h / norms_cut + attention + (2 * gates + 2 - saved) * width / t +
         routed;
}

double kept_scores(const plan::TransformerTraining& training, const plan::Cut& cut) {
  return training.attention == plan::AttentionKind::Scores
             ? 5.0 * training.model.heads * training.sequence / cut.tensor
             : 0;
}

class Holding {
 public:
  Holding(const plan::TransformerTraining& training, const plan::Cut& cut,
          const PipelineShape& shape)
      : training_(training),
        model_(training.model),
        cut_(cut),
        shape_(shape),
        stages_(layers_by_stage(training.model, cut)),
        tokens_(tokens_of(training, cut)),
        kept_dense_(layer_bytes(true)),
        kept_sparse_(model_.has_mixture() ? layer_bytes(false) : 0),
        standing_dense_(bytes_of(layer_parameters(model_, 1), parameter_bytes)),
        standing_sparse_(bytes_of_sparse(parameter_bytes)),
        gathered_dense_(bytes_of(layer_parameters(model_, 1), gathered_bytes)),
        gathered_sparse_(bytes_of_sparse(gathered_bytes)),
        standing_embedding_(bytes_of(embedding_parameters(training), parameter_bytes)),
        standing_head_(bytes_of(head_parameters(model_), parameter_bytes)),
        at_peak_(work_at_peak(training, cut, /*has_last_stage=*/false)),
        at_peak_of_last_(work_at_peak(training, cut, /*has_last_stage=*/true)) {}

  RankMemory rank(std::size_t rank) const {
    const std::vector<int>& stages = shape_.stages_of_rank[rank];
    const bool first = stages.front() == 0, last = stages.back() == cut_.stages() - 1;
    RankMemory memory = last ? at_peak_of_last_ : at_peak_;
    memory.standing = standing(rank, first, last);
    memory.kept = kept(rank);
    return memory;
  }

 private:
  static std::vector<LayerCount> layers_by_stage(const plan::TransformerConfig& model,
                                                 const plan::Cut& cut) {
    std::vector<LayerCount> stages;
    const int in_front = model.has_mixture() ? model.leading_dense_layers() : model.layers;
    int before = 0;
    for (int stage = 0; stage < cut.stages(); ++stage) {
      const int layers = cut.layers_of(stage, model.layers);
      const int dense = std::clamp(in_front - before, 0, layers);
      stages.push_back({dense, layers - dense});
      before += layers;
    }
    return stages;
  }

  const LayerCount& layers_of(std::size_t rank, std::size_t chunk) const {
    return stages_[static_cast<std::size_t>(shape_.stages_of_rank[rank][chunk])];
  }

  double standing(std::size_t rank, bool first, bool last) const {
    LayerCount layers;
    for (std::size_t chunk = 0; chunk < shape_.stages_of_rank[rank].size(); ++chunk)
      layers += layers_of(rank, chunk);
    return gathered(layers) + layers.dense * standing_dense_ + layers.sparse * standing_sparse_ +
           (first ? standing_embedding_ : 0) +
           (last && !(first && model_.tied) ? standing_head_ : 0);
  }

  /// Layers are gathered one after the other, so at least the smallest is added.
  double gathered(const LayerCount& layers) const {
    if (layers.all() == 0)
      return 0;
    return layers.dense == 0    ? gathered_sparse_
           : layers.sparse == 0 ? gathered_dense_
                                : std::min(gathered_dense_, gathered_sparse_);
  }

  /// Returns the bytes of one parameter with n replicas.
  using BytesEach = double (*)(const plan::TransformerTraining& training, int zero, double copies);

  /// `experts`: number of ranks that partition the experts, which therefore have fewer replicas.
  double bytes_of(double parameters, BytesEach each, int experts = 1) const {
    const double copies = 1.0 * cut_.data * cut_.context / experts;
    return parameters / experts / cut_.tensor * each(training_, cut_.zero, copies);
  }

  double bytes_of_sparse(BytesEach each) const {
    if (!model_.has_mixture())
      return 0;
    const double experts = expert_parameters(model_, 0);
    return bytes_of(layer_parameters(model_, 0) - experts, each) +
           bytes_of(experts, each, cut_.expert);
  }

  /// Returns the maximum over the schedule's combinations of microbatches in flight.
  double kept(std::size_t rank) const {
    double most = 0;
    for (const std::vector<int>& kept : shape_.kept[rank]) {
      const std::size_t chunks = kept.size() / 2;
      LayerCount whole, owed;
      for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
        whole += layers_of(rank, chunk) * kept[chunk];
        owed += layers_of(rank, chunk) * kept[chunks + chunk];
      }
      most = std::max(most, tokens_ * (kept_of(whole) + owed_of(owed)));
    }
    return most;
  }

  /// Returns the bytes between the two halves of a backward: products' inputs and output gradients,
  /// which replace tensors that only the input gradient needed. Scores are freed.
  double owed_of(const LayerCount& layers) const {
    const double scores =
        cut_.recompute == plan::RecomputeMode::None ? kept_scores(training_, cut_) : 0;
    return layers.dense * (kept_dense_ - scores) + layers.sparse * (kept_sparse_ - scores);
  }

  double layer_bytes(bool is_dense) const {
    const bool keeps_scores = cut_.recompute != plan::RecomputeMode::Selective;
    return kept_of_token(training_, cut_, is_dense) +
           (keeps_scores ? kept_scores(training_, cut_) : 0);
  }

  double kept_of(const LayerCount& layers) const {
    const double all = layers.dense * kept_dense_ + layers.sparse * kept_sparse_;
    if (cut_.recompute != plan::RecomputeMode::Full)
      return all;
    const double inputs = 2.0 * model_.hidden / (cut_.sequence_parallel ? cut_.tensor : 1);
    return layers.all() * inputs + (layers.sparse == 0 ? kept_dense_ : kept_sparse_);
  }

  const plan::TransformerTraining& training_;
  const plan::TransformerConfig& model_;
  const plan::Cut& cut_;
  const PipelineShape& shape_;
  const std::vector<LayerCount> stages_;
  const double tokens_;
  // Bytes of a layer, and of embedding and head.
  const double kept_dense_, kept_sparse_;
  const double standing_dense_, standing_sparse_, gathered_dense_, gathered_sparse_;
  const double standing_embedding_, standing_head_;
  const RankMemory at_peak_, at_peak_of_last_;
};

}  // namespace

LayerKept layer_kept(const plan::TransformerTraining& training, const plan::Cut& cut,
                     bool is_dense) {
  const double tokens = tokens_of(training, cut), scores = kept_scores(training, cut);
  return {.all = tokens * (kept_of_token(training, cut, is_dense) + scores),
          .scores = tokens * scores};
}

RankMemory work_at_peak(const plan::TransformerTraining& training, const plan::Cut& cut,
                        bool has_last_stage) {
  const plan::TransformerConfig& model = training.model;
  const double h = model.hidden, t = cut.tensor, tokens = tokens_of(training, cut);
  const bool routed = model.has_mixture();
  RankMemory memory;
  memory.tokens = tokens * h / t;
  memory.feed_forward = routed ? 0 : tokens * model.feed_forward / t;
  memory.weights = routed ? 0 : (model.gated ? 2.0 : 1.0) * model.feed_forward * h / t;
  memory.logits = has_last_stage ? tokens * model.vocabulary / t : 0;
  memory.head_parameters = has_last_stage ? head_parameters(model) / t : 0;
  memory.routed_tokens = routed ? tokens * model.experts_per_token * h : 0;
  memory.latent_heads = model.is_latent() ? tokens * model.heads * model.head_channels / t : 0;
  return memory;
}

double bytes_at_peak(const RankMemory& rank, const plan::MachineConstants& constants) {
  return rank.tokens * constants.token_bytes + rank.feed_forward * constants.feed_forward_bytes +
         rank.weights * constants.weight_bytes + rank.logits * constants.logit_bytes +
         rank.head_parameters * constants.head_gradient_bytes +
         rank.routed_tokens * constants.routed_token_bytes +
         rank.latent_heads * constants.latent_head_bytes;
}

std::vector<RankMemory> transformer_memory(const plan::TransformerTraining& training,
                                           const plan::Cut& cut, const PipelineShape& shape) {
  std::vector<RankMemory> ranks;
  ranks.reserve(shape.kept.size());
  const Holding holding(training, cut, shape);
  for (std::size_t rank = 0; rank < shape.kept.size(); ++rank)
    ranks.push_back(holding.rank(rank));
  return ranks;
}

std::vector<RankMemory> transformer_memory(const plan::TransformerTraining& training,
                                           const plan::Cut& cut) {
  return transformer_memory(training, cut, pipeline_shape(cut, training.batch));
}

double peak_of(const std::vector<RankMemory>& ranks, const plan::MachineConstants& constants) {
  double peak = 0;
  for (const RankMemory& rank : ranks)
    peak = std::max(
        peak, rank.standing + rank.kept + constants.context_bytes + bytes_at_peak(rank, constants));
  return peak;
}

}  // namespace pipewright::models
