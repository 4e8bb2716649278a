#include "pipewright/plan/runs/transformer_memory.hpp"

#include <algorithm>

namespace pipewright::plan {
namespace {

/// Bytes of a parameter among n copies: two of its own, four of its gradient, twelve of its master
/// copy and Adam's two states, of which ZeRO divides more with each stage (arXiv 1910.02054).
double parameter_bytes(int zero, double copies) {
  switch (zero) {
    case 0:
      return 18;
    case 1:
      return 6 + 12 / copies;
    case 2:
      return 2 + 16 / copies;
    default:
      return 18 / copies;
  }
}

/// Layers of a rank.
struct LayerCount {
  int dense = 0, sparse = 0;
  int all() const { return dense + sparse; }
  LayerCount operator*(int times) const { return {dense * times, sparse * times}; }
  LayerCount& operator+=(const LayerCount& other) {
    dense += other.dense, sparse += other.sparse;
    return *this;
  }
};

class Holding {
 public:
  Holding(const TrainingRun& run, RunRecompute recompute, const PipelineShape& shape)
      : run_(run),
        shape_(shape),
        stages_(layers_by_stage(run)),
        recompute_(run.recompute == RunRecompute::Unknown ? recompute : run.recompute),
        tokens_(1.0 * run.microbatch * run.sequence / run.context) {}

  RankMemory rank(std::size_t rank) const {
    const std::vector<int>& stages = shape_.stages_of_rank[rank];
    const bool first = stages.front() == 0, last = stages.back() == run_.stages() - 1;
    const double h = run_.hidden, t = run_.tensor, routed = run_.experts > 0 ? 1 : 0;
    RankMemory memory;
    memory.standing = standing(rank, first, last);
    memory.kept = kept(rank);
    memory.tokens = tokens_ * h / t;
    memory.feed_forward = routed > 0 ? 0 : tokens_ * run_.feed_forward / t;
    memory.weights = routed > 0 ? 0 : (run_.gated ? 2.0 : 1.0) * run_.feed_forward * h / t;
    memory.logits = last ? tokens_ * run_.vocabulary / t : 0;
    memory.head_parameters = last ? run_.head_parameters() / t : 0;
    memory.routed_tokens = routed * tokens_ * run_.experts_per_token * h;
    memory.latent_heads = run_.kv_rank > 0 ? tokens_ * run_.heads * run_.head_channels / t : 0;
    return memory;
  }

 private:
  static std::vector<LayerCount> layers_by_stage(const TrainingRun& run) {
    std::vector<LayerCount> stages;
    int before = 0;
    for (int stage = 0; stage < run.stages(); ++stage) {
      const int layers = run.layers_of(stage);
      const int dense =
          run.experts == 0 ? layers : std::clamp(run.dense_layers - before, 0, layers);
      stages.push_back({dense, layers - dense});
      before += layers;
    }
    return stages;
  }

  const LayerCount& layers_of(std::size_t rank, std::size_t chunk) const {
    return stages_[static_cast<std::size_t>(shape_.stages_of_rank[rank][chunk])];
  }

  double standing(std::size_t rank, bool first, bool last) const {
    TrainingRun dense = run_, sparse = run_;
    dense.experts = 0;
    sparse.dense_layers = 0;
    LayerCount layers;
    for (std::size_t chunk = 0; chunk < shape_.stages_of_rank[rank].size(); ++chunk)
      layers += layers_of(rank, chunk);
    const double t = run_.tensor, copies = 1.0 * run_.data * run_.context;
    const double experts = layers.sparse * sparse.expert_parameters() / run_.expert;
    const double others = layers.dense * dense.layer_parameters() +
                          layers.sparse * (sparse.layer_parameters() - sparse.expert_parameters()) +
                          (first ? run_.embedding_parameters() : 0) +
                          (last ? run_.head_parameters() : 0);
    return others / t * parameter_bytes(run_.zero, copies) +
           experts / t * parameter_bytes(run_.zero, copies / run_.expert);
  }

  /// Of a token in a layer, for the backward, when nothing runs again.
  double layer_bytes(bool is_dense) const {
    const double h = run_.hidden, t = run_.tensor, d = run_.head_channels, a = run_.heads;
    const double norms_cut = run_.sequence_parallel ? t : 1;
    if (!run_.gated)  // Korthikanti et al., arXiv 2205.05198
      return 10 * h / norms_cut + (8 * h + 4.0 * run_.feed_forward) / t + scores();
    const double attention =
        run_.kv_rank > 0 ? 2 *
                               (2.0 * run_.q_rank + 2.0 * run_.kv_rank + run_.rope_channels +
                                2 * a * (d + run_.rope_channels) + 2 * a * d) /
                               t
                         : (4 * a * d + 4.0 * run_.kv_heads * d) / t;
    const double width =
        is_dense ? 1.0 * run_.feed_forward
                 : (1.0 * run_.shared_experts + run_.experts_per_token) * run_.expert_feed_forward;
    const double routed = is_dense ? 0 : 2.0 * run_.experts_per_token * h;
    return 8 * h / norms_cut + attention + 6 * width / t + routed + scores();
  }

  double scores() const {
    const bool are_kept =
        run_.attention == AttentionKind::Scores && recompute_ != RunRecompute::Selective;
    return are_kept ? 5.0 * run_.heads * run_.sequence / run_.tensor : 0;
  }

  /// At the moment at which it is most.
  double kept(std::size_t rank) const {
    double most = 0;
    for (const std::vector<int>& held : shape_.held[rank]) {
      LayerCount layers;
      for (std::size_t chunk = 0; chunk < held.size(); ++chunk)
        layers += layers_of(rank, chunk) * held[chunk];
      most = std::max(most, tokens_ * kept_of(layers));
    }
    return most;
  }

  double kept_of(const LayerCount& layers) const {
    const double all = (layers.dense > 0 ? layers.dense * layer_bytes(true) : 0) +
                       (layers.sparse > 0 ? layers.sparse * layer_bytes(false) : 0);
    if (recompute_ != RunRecompute::Full)
      return all;
    const double inputs = 2.0 * run_.hidden / (run_.sequence_parallel ? run_.tensor : 1);
    return layers.all() * inputs + layer_bytes(layers.sparse == 0);
  }

  const TrainingRun& run_;
  const PipelineShape& shape_;
  const std::vector<LayerCount> stages_;
  const RunRecompute recompute_;
  const double tokens_;
};

}  // namespace

std::vector<RankMemory> transformer_memory(const TrainingRun& run, RunRecompute recompute,
                                           const PipelineShape& shape) {
  std::vector<RankMemory> ranks;
  const Holding holding(run, recompute, shape);
  for (std::size_t rank = 0; rank < shape.held.size(); ++rank)
    ranks.push_back(holding.rank(rank));
  return ranks;
}

std::vector<RankMemory> transformer_memory(const TrainingRun& run, RunRecompute recompute) {
  return transformer_memory(run, recompute,
                            pipeline_shape(std::string(run.schedule_name()), run.pipeline,
                                           run.microbatches(), run.chunks));
}

double peak_of(const std::vector<RankMemory>& ranks, const MachineConstants& constants) {
  double peak = 0;
  for (const RankMemory& rank : ranks)
    peak = std::max(peak, rank.standing + rank.kept + constants.context_bytes +
                              rank.tokens * constants.token_bytes +
                              rank.feed_forward * constants.feed_forward_bytes +
                              rank.weights * constants.weight_bytes +
                              rank.logits * constants.logit_bytes +
                              rank.head_parameters * constants.head_gradient_bytes +
                              rank.routed_tokens * constants.routed_token_bytes +
                              rank.latent_heads * constants.latent_head_bytes);
  return peak;
}

}  // namespace pipewright::plan
