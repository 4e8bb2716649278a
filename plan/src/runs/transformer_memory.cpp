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

class Holding {
 public:
  Holding(const TrainingRun& run, RunRecompute recompute)
      : run_(run),
        recompute_(run.recompute == RunRecompute::Unknown ? recompute : run.recompute),
        tokens_(1.0 * run.microbatch * run.sequence / run.context) {}

  RankMemory rank(int rank) const {
    const bool first = rank == 0, last = rank == run_.pipeline - 1;
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
  int layers_of_rank() const { return run_.layers / run_.pipeline; }
  int dense_on(int rank) const {
    if (run_.experts == 0)
      return layers_of_rank();
    return std::clamp(run_.dense_layers - rank * layers_of_rank(), 0, layers_of_rank());
  }

  double standing(int rank, bool first, bool last) const {
    TrainingRun dense = run_, sparse = run_;
    dense.experts = 0;
    sparse.dense_layers = 0;
    const int dense_layers = dense_on(rank), sparse_layers = layers_of_rank() - dense_layers;
    const double t = run_.tensor, copies = 1.0 * run_.data * run_.context;
    const double experts = sparse_layers * sparse.expert_parameters() / run_.expert;
    const double others = dense_layers * dense.layer_parameters() +
                          sparse_layers * (sparse.layer_parameters() - sparse.expert_parameters()) +
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

  /// 1F1B, interleaved or not (formulas of Narayanan et al., arXiv 2104.04473).
  double in_flight(int rank) const {
    const int p = run_.pipeline, v = run_.chunks, m = run_.microbatches();
    if (v == 1)
      return std::min(p - rank, m);
    return std::min(1.0 * m, (p * v + p - 1 - 2.0 * rank) / v);
  }

  double kept(int rank) const {
    const int dense = dense_on(rank), sparse = layers_of_rank() - dense;
    const double all = dense * layer_bytes(true) + (sparse > 0 ? sparse * layer_bytes(false) : 0);
    if (recompute_ != RunRecompute::Full)
      return tokens_ * all * in_flight(rank);
    const double inputs = 2.0 * run_.hidden / (run_.sequence_parallel ? run_.tensor : 1);
    return tokens_ * (layers_of_rank() * inputs * in_flight(rank) + layer_bytes(sparse == 0));
  }

  const TrainingRun& run_;
  const RunRecompute recompute_;
  const double tokens_;
};

}  // namespace

std::vector<RankMemory> transformer_memory(const TrainingRun& run, RunRecompute recompute) {
  std::vector<RankMemory> ranks;
  const Holding holding(run, recompute);
  for (int rank = 0; rank < run.pipeline; ++rank)
    ranks.push_back(holding.rank(rank));
  return ranks;
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
