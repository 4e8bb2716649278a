#include "pipewright/plan/runs/transformer_times.hpp"

#include <algorithm>
#include <cmath>

#include "reduction_times.hpp"

namespace pipewright::plan {
namespace {

// Published of the implementation, not fitted.
constexpr double half_bytes = 2;            // of an activation, a parameter, a gradient
constexpr double element_passes_whole = 6;  // over 2 bytes of each activation, not cut by tensor
constexpr double element_passes_cut = 8;    // … that are cut
constexpr double score_bytes = 12;          // written and read for a score, forward
constexpr double expert_passes = 6;         // over the tokens that go to experts
constexpr double head_element_bytes = 16;   // for a logit, forward and backward
constexpr double embedding_token_s = 0.35e-6;
constexpr double optimizer_bytes = 28;  // for a parameter: read and written by Adam
constexpr double narrow_head = 128;     // channels
constexpr int wide_cut = 8;

Product product(double m, double k, double n) {
  const double volume = m * k * n;
  return {2 * volume, std::cbrt(volume)};
}

/// A product of the attention: k and n as if not cut, and which of the two is cut.
struct Projection {
  double k = 0, n = 0;
  bool cuts_k = false;
};

/// Queries, keys and values, and the way back; of latent attention (DeepSeek-V2, arXiv 2405.04434)
/// through its ranks.
std::vector<Projection> projections_of(const TrainingRun& run) {
  const double h = run.hidden, heads = run.heads, d = run.head_channels;
  if (run.kv_rank == 0)
    return {{h, d * (heads + 2.0 * run.kv_heads)}, {d * heads, h, true}};
  const double q = run.q_rank, kv = run.kv_rank, rope = run.rope_channels;
  return {{h, q + kv + rope}, {q, heads * (d + rope)}, {kv, heads * 2 * d}, {heads * d, h, true}};
}

class Counting {
 public:
  Counting(const Cluster& cluster, const TrainingRun& run) : cluster_(cluster), run_(run) {}

  TransformerWork work(RunRecompute recompute) const {
    TransformerWork work;
    work.peak = peak();
    work.head_peak = cluster_.device.flops_per_s;
    add_layers(work);
    add_ends_of_model(work);
    add_hop(work);
    add_sums(work);
    const RunRecompute mode = run_.recompute == RunRecompute::Unknown ? recompute : run_.recompute;
    work.recomputes_all = mode == RunRecompute::Full;
    work.recomputes_core = mode == RunRecompute::Selective;
    const int last = run_.stages() - 1;
    work.first_end = end_of(run_.layers_of(0), run_.embedding_parameters());
    work.middle_end = end_of(most_layers_of_middle(), 0);
    work.last_end = end_of(run_.layers_of(last), run_.head_parameters());
    work.only_end = end_of(run_.layers, run_.embedding_parameters() + run_.head_parameters());
    return work;
  }

 private:
  double peak() const {
    const double half = cluster_.device.flops_per_s;
    return run_.precision == RunPrecision::Float8 ? 2 * half : half;
  }
  double tokens() const { return 1.0 * run_.microbatch * run_.sequence / run_.context; }
  double memory_s(double bytes) const { return bytes / cluster_.device.memory_bandwidth_per_s; }
  double activation_bytes() const { return half_bytes * tokens() * run_.hidden; }

  void add_layers(TransformerWork& work) const {
    work.layer = layer(run_.experts > 0);
    if (run_.dense_layers > 0)
      work.dense_layer = layer(false);
    work.cut = run_.tensor > 1;
    work.cut_wide = run_.tensor >= wide_cut;
    const auto scores = 1L * run_.microbatch * run_.heads / run_.tensor;
    work.odd_scores = run_.attention == AttentionKind::Scores && scores % 4 != 0;
    work.narrow_heads = run_.head_channels < narrow_head;
  }

  LayerWork layer(bool has_experts) const {
    LayerWork layer;
    const double t = run_.tensor, rows = tokens(), heads = run_.heads / t;
    for (const auto& [k, n, cuts_k] : projections_of(run_))
      layer.products.push_back(product(rows, cuts_k ? k / t : k, cuts_k ? n : n / t));
    const double channels = 2.0 * run_.head_channels + run_.rope_channels;
    layer.core_s = 2 * rows * run_.sequence * heads * channels / peak();
    if (run_.attention == AttentionKind::Scores)
      layer.core_bytes_s =
          memory_s(score_bytes * run_.microbatch * heads * run_.sequence * run_.sequence);
    const double passes = run_.sequence_parallel ? (element_passes_whole + element_passes_cut) / t
                                                 : element_passes_whole + element_passes_cut / t;
    layer.element_bytes_s = memory_s(activation_bytes() * passes);
    if (has_experts)
      add_experts(layer);
    else
      add_feed_forward(layer, rows, run_.feed_forward, 1);
    add_context(layer);
    return layer;
  }

  /// `count` of them, each of m rows.
  void add_feed_forward(LayerWork& layer, double m, double width, double count) const {
    const double h = run_.hidden, t = run_.tensor;
    for (const Product& one :
         {product(m, h, (run_.gated ? 2.0 : 1.0) * width / t), product(m, width / t, h)})
      layer.products.push_back({count * one.flops, one.side});
  }

  /// Tokens go to their experts and come back; around it they are put in order, in memory.
  void add_experts(LayerWork& layer) const {
    const double here = 1.0 * run_.experts / run_.expert;
    add_feed_forward(layer, tokens() * run_.experts_per_token / here, run_.expert_feed_forward,
                     here);
    if (run_.shared_experts > 0)
      add_feed_forward(layer, tokens(), 1.0 * run_.shared_experts * run_.expert_feed_forward, 1);
    const double bytes = activation_bytes() * run_.experts_per_token;
    layer.element_bytes_s += memory_s(expert_passes * bytes);
    if (run_.expert == 1)
      return;
    layer.exchanges += 2;
    add_exchange(layer, 2 * bytes * (run_.expert - 1.0) / run_.expert, run_.expert);
  }

  /// Keys and values of the others' tokens go round, nothing computed meanwhile (Megatron-LM's
  /// all-gather).
  void add_context(LayerWork& layer) const {
    if (run_.context == 1)
      return;
    const double heads = run_.kv_rank > 0 ? run_.heads : run_.kv_heads;
    const double bytes = 2 * half_bytes * tokens() * heads * run_.head_channels / run_.tensor;
    add_exchange(layer, bytes * (run_.context - 1), run_.context);
    layer.exchanges += 1;
  }

  /// Each of `devices` sends so much, beside those of the other groups of its node.
  void add_exchange(LayerWork& layer, double sent, int devices) const {
    if (1.0 * devices * run_.tensor <= cluster_.devices_per_node)
      layer.exchange_s += sent / cluster_.within_node.bandwidth_per_s;
    else
      layer.exchange_network_s +=
          sent * cluster_.devices_per_node / cluster_.between_nodes.bandwidth_per_s;
  }

  void add_ends_of_model(TransformerWork& work) const {
    const double logits = tokens() * run_.vocabulary / run_.tensor;
    work.head_s = 6 * run_.hidden * logits / work.head_peak;
    work.head_bytes_s = memory_s(head_element_bytes * logits);
    work.odd_vocabulary = run_.tensor == 1 && run_.vocabulary % 2 != 0;
    work.embedding_s = embedding_token_s * tokens();
  }

  /// More pipelines of a node than one, and nodes of a stage beyond the second, wait for each
  /// other.
  void add_hop(TransformerWork& work) const {
    work.hop_size = whole_bytes(activation_bytes());
    work.hop_s = activation_bytes() / cluster_.within_node.bandwidth_per_s;
    const double in_node = cluster_.devices_per_node;
    const double pipelines = in_node / std::min<double>(run_.tensor, in_node);
    const double nodes = 1.0 * run_.data * run_.context * run_.tensor / in_node;
    if (run_.gpus <= cluster_.devices_per_node)
      return;
    work.network_hop_s = activation_bytes() / cluster_.between_nodes.bandwidth_per_s;
    work.uplink_s = (pipelines - 1) * std::max(0.0, nodes - 2) * activation_bytes() /
                    cluster_.between_nodes.bandwidth_per_s;
  }

  void add_sums(TransformerWork& work) const {
    if (run_.tensor == 1)
      return;
    work.sums = 2;
    const SumTime time = sum_time(cluster_, run_.tensor, activation_bytes(), 1,
                                  run_.tensor > cluster_.devices_per_node);
    work.sum_table_s = time.table_s + time.bulk_s;
    work.sum_network_s = time.network_s;
  }

  int most_layers_of_middle() const {
    int most = 0;
    for (int stage = 1; stage + 1 < run_.stages(); ++stage)
      most = std::max(most, run_.layers_of(stage));
    return most;
  }

  StageEndWork end_of(double layers, double more_parameters) const {
    const double experts = layers * run_.expert_parameters() / (run_.tensor * run_.expert);
    const double others =
        (layers * (run_.layer_parameters() - run_.expert_parameters()) + more_parameters) /
        run_.tensor;
    const int copies = run_.data * run_.context;
    StageEndWork end = end_of_copies(others, copies);
    const StageEndWork of_experts = end_of_copies(experts, copies / run_.expert);
    end.table_s += of_experts.table_s, end.bulk_s += of_experts.bulk_s;
    end.network_s += of_experts.network_s, end.optimizer_s += of_experts.optimizer_s;
    return end;
  }

  /// Under ZeRO the parameters are gathered behind the step: the second half of the same ring.
  StageEndWork end_of_copies(double parameters, int copies) const {
    if (parameters <= 0)
      return {};
    const bool spans = 1.0 * copies * run_.tensor > cluster_.devices_per_node;
    const SumTime time = sum_time(cluster_, copies, half_bytes * parameters,
                                  std::min(run_.tensor, cluster_.devices_per_node), spans);
    const double share = run_.zero > 0 ? copies : 1;
    return {.table_s = time.table_s,
            .bulk_s = time.bulk_s,
            .network_s = time.network_s,
            .optimizer_s = memory_s(optimizer_bytes * parameters / share)};
  }

  const Cluster& cluster_;
  const TrainingRun& run_;
};

/// Counts with constants.
class Pricing {
 public:
  Pricing(const TransformerWork& work, const MachineConstants& constants)
      : work_(work), c_(constants) {}

  TransformerTimes times(const LayerFactors& factors) const {
    TransformerTimes times;
    times.layer = layer_pass(work_.layer, factors.layer);
    if (!work_.dense_layer.products.empty())
      times.dense_layer = layer_pass(work_.dense_layer, factors.layer);
    times.embedding = thirds((work_.embedding_s + c_.stage_launch_s / 2) * factors.embedding);
    times.head = thirds(head_s() * factors.head);
    times.hop_s = work_.hop_s / c_.hop_efficiency;
    times.network_hop_s =
        work_.network_hop_s / c_.network_efficiency + work_.uplink_s * c_.uplink_waiting;
    times.first_end_s = end_s(work_.first_end);
    times.middle_end_s = end_s(work_.middle_end);
    times.last_end_s = end_s(work_.last_end);
    times.only_end_s = end_s(work_.only_end);
    return times;
  }

 private:
  static PassSeconds thirds(double seconds) { return {seconds / 3, 2 * seconds / 3}; }
  double memory_s(double at_bandwidth) const { return at_bandwidth / c_.memory_efficiency; }
  double rate() const { return work_.peak * c_.gemm_efficiency; }

  double sum_s() const {
    return work_.sums == 0 ? 0
                           : work_.sum_table_s + work_.sum_network_s / c_.network_efficiency +
                                 c_.collective_call_s;
  }

  double core_s(const LayerWork& layer) const {
    return layer.core_s / (c_.gemm_efficiency * c_.core_efficiency) + memory_s(layer.core_bytes_s);
  }

  double exchange_s(const LayerWork& layer) const {
    return layer.exchange_s / c_.exchange_efficiency +
           layer.exchange_network_s / c_.network_efficiency +
           layer.exchanges * c_.collective_call_s;
  }

  PassSeconds layer_pass(const LayerWork& layer, double factor) const {
    double forward = core_s(layer) + memory_s(layer.element_bytes_s);
    for (const Product& product : layer.products)
      forward += product.flops / rate() * (1 + c_.gemm_saturation / product.side);
    const double sums = work_.sums * sum_s() + exchange_s(layer);
    const double again = work_.recomputes_all    ? forward + sums
                         : work_.recomputes_core ? core_s(layer)
                                                 : 0;
    const PassSeconds device{forward + sums, 2 * forward + sums + again};
    const double all = device.forward + device.backward;
    // Where one of the two is much longer, it alone counts.
    const double p = c_.overlap_power;
    const double both = all * std::pow(1 + std::pow(host_s() / all, p), 1 / p);
    return {device.forward * both / all * factor, device.backward * both / all * factor};
  }

  double host_s() const {
    const double passes = work_.recomputes_all ? 4.0 / 3 : 1;
    return passes *
           (c_.layer_launch_s + work_.cut * c_.tensor_launch_s +
            work_.cut_wide * c_.wide_tensor_launch_s + work_.odd_scores * c_.odd_scores_launch_s +
            work_.narrow_heads * c_.narrow_heads_launch_s);
  }

  double head_s() const {
    return c_.stage_launch_s +
           work_.head_s / c_.gemm_efficiency * (work_.odd_vocabulary ? c_.odd_vocabulary : 1) +
           memory_s(work_.head_bytes_s) + sum_s();
  }

  double end_s(const StageEndWork& end) const {
    return end.table_s / c_.reduction_efficiency + end.bulk_s / c_.bulk_reduction +
           end.network_s / c_.network_efficiency + end.optimizer_s / c_.optimizer_efficiency;
  }

  const TransformerWork& work_;
  const MachineConstants& c_;
};

}  // namespace

TransformerWork transformer_work(const Cluster& cluster, const TrainingRun& run,
                                 RunRecompute recompute) {
  return Counting(cluster, run).work(recompute);
}

TransformerTimes transformer_times(const TransformerWork& work, const MachineConstants& constants,
                                   const LayerFactors& factors) {
  return Pricing(work, constants).times(factors);
}

LayerClass layer_class_of(const TrainingRun& run) {
  return {.hidden = run.hidden,
          .heads = run.heads,
          .sequence = run.sequence,
          .tensor = run.tensor,
          .microbatch = run.microbatch,
          .runs = 1};
}

bool same_layers(const LayerClass& a, const LayerClass& b) {
  return a.hidden == b.hidden && a.heads == b.heads && a.sequence == b.sequence &&
         a.tensor == b.tensor && a.microbatch == b.microbatch;
}

}  // namespace pipewright::plan
