#include "pipewright/plan/transformer/transformer_times.hpp"

#include <algorithm>
#include <cmath>

#include "pipewright/plan/cluster/collective_times.hpp"
#include "pipewright/plan/transformer/transformer_counts.hpp"

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
constexpr double balance_of_guess = 312e12 / 2039e9;  // FLOPs a byte, of the A100
constexpr double replayed_launch = 0.05;  // of what a launch costs where nobody replays it

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
std::vector<Projection> projections_of(const TransformerConfig& model) {
  const double h = model.hidden, heads = model.heads, d = model.head_channels;
  if (!model.is_latent())
    return {{h, d * (heads + 2.0 * model.kv_heads)}, {d * heads, h, true}};
  const double q = model.q_rank, kv = model.kv_rank, rope = model.rope_channels;
  return {{h, q + kv + rope}, {q, heads * (d + rope)}, {kv, heads * 2 * d}, {heads * d, h, true}};
}

double at_bandwidth_s(const Cluster& cluster, double bytes) {
  return bytes / cluster.device.memory_bandwidth_per_s;
}

class Counting {
 public:
  Counting(const Cluster& cluster, const TransformerTraining& training, const Cut& cut)
      : cluster_(cluster), training_(training), model_(training.model), cut_(cut) {}

  TransformerWork work() const {
    TransformerWork work;
    work.peak = peak();
    work.head_peak = cluster_.device.flops_per_s;
    work.balance =
        cluster_.device.flops_per_s / cluster_.device.memory_bandwidth_per_s / balance_of_guess;
    add_layers(work);
    add_ends_of_model(work);
    add_hop(work);
    add_sums(work);
    work.recomputes_all = cut_.recompute == RecomputeMode::Full;
    work.recomputes_core = cut_.recompute == RecomputeMode::Selective;
    work.replays_launches = training_.replays_launches;
    work.overlaps_sums = cut_.overlaps_sums;
    work.overlaps_gradients = cut_.overlaps_gradients;
    work.overlaps_parameters = cut_.overlaps_parameters && cut_.zero > 0;
    work.pipeline = cut_.pipeline, work.chunks = cut_.chunks;
    const double embedding = embedding_parameters(training_), head = head_parameters(model_);
    work.first_end = end_of(layers_of(0), embedding);
    work.middle_end = end_of(most_layers_of_middle(), 0);
    work.last_end = end_of(layers_of(cut_.stages() - 1), head);
    work.only_end = end_of(model_.layers, embedding + head);
    return work;
  }

 private:
  double peak() const { return rate_of(training_.precision) * cluster_.device.flops_per_s; }
  /// Attention's two products are in 16 bits, whatever the others are in.
  double core_peak() const { return std::min(peak(), cluster_.device.flops_per_s); }
  double tokens() const { return 1.0 * cut_.microbatch * training_.sequence / cut_.context; }
  double memory_s(double bytes) const { return at_bandwidth_s(cluster_, bytes); }
  double activation_bytes() const { return half_bytes * tokens() * model_.hidden; }

  void add_layers(TransformerWork& work) const {
    work.layer = layer(model_.has_mixture());
    if (model_.leading_dense_layers() > 0)
      work.dense_layer = layer(false);
    work.cut = cut_.tensor > 1;
    work.cut_wide = cut_.tensor >= wide_cut;
    const auto scores = 1L * cut_.microbatch * model_.heads / cut_.tensor;
    work.odd_scores = training_.attention == AttentionKind::Scores && scores % 4 != 0;
    work.narrow_heads = model_.head_channels < narrow_head;
  }

  LayerWork layer(bool has_experts) const {
    LayerWork layer;
    const double t = cut_.tensor, rows = tokens(), heads = model_.heads / t;
    for (const auto& [k, n, cuts_k] : projections_of(model_))
      layer.products.push_back(product(rows, cuts_k ? k / t : k, cuts_k ? n : n / t));
    const double channels = 2.0 * model_.head_channels + model_.rope_channels;
    layer.core_s = 2 * rows * training_.sequence * heads * channels / core_peak();
    if (training_.attention == AttentionKind::Scores)
      layer.core_bytes_s =
          memory_s(score_bytes * cut_.microbatch * heads * training_.sequence * training_.sequence);
    const double passes = cut_.sequence_parallel ? (element_passes_whole + element_passes_cut) / t
                                                 : element_passes_whole + element_passes_cut / t;
    layer.element_bytes_s = memory_s(activation_bytes() * passes);
    if (has_experts)
      add_experts(layer);
    else
      add_feed_forward(layer, rows, model_.feed_forward, 1, t);
    add_context(layer);
    return layer;
  }

  /// `count` of them, each of m rows, cut among t devices.
  void add_feed_forward(LayerWork& layer, double m, double width, double count, double t) const {
    const double h = model_.hidden;
    for (const Product& one :
         {product(m, h, (model_.gated ? 2.0 : 1.0) * width / t), product(m, width / t, h)})
      layer.products.push_back({count * one.flops, one.side});
  }

  /// Tokens go to their experts and come back; around it they are put in order, in memory.
  void add_experts(LayerWork& layer) const {
    const double here = 1.0 * model_.experts / cut_.expert, t = cut_.expert_cut();
    const double routed = tokens() * model_.experts_per_token * t / cut_.tensor;
    add_feed_forward(layer, routed / here, model_.expert_feed_forward, here, t);
    if (model_.shared_feed_forward > 0)
      add_feed_forward(layer, tokens(), model_.shared_feed_forward, 1, cut_.tensor);
    const double bytes = activation_bytes() * model_.experts_per_token;
    layer.element_bytes_s += memory_s(expert_passes * bytes);
    if (cut_.expert == 1)
      return;
    layer.experts = {2, whole_bytes(bytes * (cut_.expert - 1.0) / cut_.expert)};
    add_exchange(layer, layer.experts, cut_.expert);
  }

  /// Keys and values of the others' tokens go round, nothing computed meanwhile (Megatron-LM's
  /// all-gather).
  void add_context(LayerWork& layer) const {
    if (cut_.context == 1)
      return;
    const double heads = model_.is_latent() ? model_.heads : model_.kv_heads;
    const double bytes = 2 * half_bytes * tokens() * heads * model_.head_channels / cut_.tensor;
    layer.contexts = {1, whole_bytes(bytes * (cut_.context - 1))};
    add_exchange(layer, layer.contexts, cut_.context);
  }

  /// Of so many devices that lie as many apart as shards of tensors lie between them; of copies,
  /// where these lie behind the pipelines, each with its shards of context.
  GroupPlace place(int devices) const {
    const int in_node = cluster_.devices_per_node;
    int here = std::max(1, in_node / cut_.tensor);
    if (cut_.copies_last && devices > cut_.context)
      here = cut_.context * std::max(1, in_node / (cut_.ranks_beside() * cut_.pipeline));
    here = std::min(here, in_node);
    return {.devices = devices,
            .beside = in_node / here,
            .spans = devices > here,
            .level = level_between(cluster_, 0, in_node / here * (devices - 1))};
  }

  void add_exchange(LayerWork& layer, const ShardTraffic& traffic, int devices) const {
    const double sent = traffic.times * static_cast<double>(traffic.bytes.value);
    const ExchangeTime time = exchange_time(cluster_, place(devices), sent);
    layer.exchanged.node_s += time.node_s, layer.exchanged.network_s += time.network_s;
  }

  void add_ends_of_model(TransformerWork& work) const {
    const double logits = tokens() * model_.vocabulary / cut_.tensor;
    work.head_s = 6 * model_.hidden * logits / work.head_peak;
    work.head_bytes_s = memory_s(head_element_bytes * logits);
    work.odd_vocabulary = cut_.tensor == 1 && model_.vocabulary % 2 != 0;
    work.embedding_s = embedding_token_s * tokens();
  }

  /// More pipelines of a node than one, and nodes of a stage beyond the second, wait for each
  /// other.
  void add_hop(TransformerWork& work) const {
    work.hop_size = whole_bytes(activation_bytes());
    work.hop_s = activation_bytes() / cluster_.within_node.bandwidth_per_s;
    const double in_node = cluster_.devices_per_node;
    const double pipelines = in_node / std::min<double>(cut_.tensor, in_node);
    const double nodes = 1.0 * cut_.devices_of_stage() / in_node;
    if (cut_.ranks_beside() * cut_.pipeline <= cluster_.devices_per_node)
      return;
    const Link& link = link_of_level(cluster_, level_of_hop());
    work.network_hop_s = activation_bytes() / link.bandwidth_per_s * link.oversubscription;
    work.uplink_s = (pipelines - 1) * std::max(0.0, nodes - 2) * work.network_hop_s;
  }

  /// Of a pipeline that lies on several nodes.
  std::size_t level_of_hop() const {
    const int apart = cut_.copies_last ? cut_.ranks_beside() : cut_.devices_of_stage();
    return std::max<std::size_t>(1, level_between(cluster_, 0, apart));
  }

  void add_sums(TransformerWork& work) const {
    if (cut_.tensor == 1)
      return;
    work.sums = {2, whole_bytes(activation_bytes())};
    const GroupPlace shards{.devices = cut_.tensor,
                            .spans = cut_.tensor > cluster_.devices_per_node};
    work.sum = sum_time(cluster_, shards, activation_bytes());
  }

  int layers_of(int stage) const { return cut_.layers_of(stage, model_.layers); }

  int most_layers_of_middle() const {
    int most = 0;
    for (int stage = 1; stage + 1 < cut_.stages(); ++stage)
      most = std::max(most, layers_of(stage));
    return most;
  }

  StageEndWork end_of(double layers, double more_parameters) const {
    const double of_experts_in_layer = expert_parameters(model_);
    const double experts = layers * of_experts_in_layer / (cut_.expert_cut() * cut_.expert);
    const double others =
        (layers * (layer_parameters(model_) - of_experts_in_layer) + more_parameters) / cut_.tensor;
    const int copies = cut_.data * cut_.context;
    StageEndWork end = end_of_copies(others, copies);
    end.layers = layers;
    const StageEndWork of_experts = end_of_copies(experts, cut_.expert_copies());
    end.sum.table_s += of_experts.sum.table_s, end.sum.bulk_s += of_experts.sum.bulk_s;
    end.sum.inside_s += of_experts.sum.inside_s;
    end.sum.network_s += of_experts.sum.network_s, end.optimizer_s += of_experts.optimizer_s;
    return end;
  }

  /// Under ZeRO the parameters are gathered behind the step: the second half of the same ring.
  StageEndWork end_of_copies(double parameters, int copies) const {
    if (parameters <= 0)
      return {};
    const double share = cut_.zero > 0 ? copies : 1;
    return {.sum = sum_time(cluster_, place(copies), half_bytes * parameters),
            .optimizer_s = optimizer_s(cluster_, parameters / share)};
  }

  const Cluster& cluster_;
  const TransformerTraining& training_;
  const TransformerConfig& model_;
  const Cut& cut_;
};

/// The share of a launch that is left where it is replayed.
double left_of_launch(const TransformerWork& work) {
  return work.replays_launches ? replayed_launch : 1;
}

/// What is seen of one sum among the devices that a layer is cut among.
double shown_sum_s(const TransformerWork& work, const MachineConstants& constants) {
  if (work.sums.times == 0)
    return 0;
  const double sum =
      shard_sum_s(work.sum, constants) - (1 - left_of_launch(work)) * constants.collective_call_s;
  return sum * (work.overlaps_sums ? constants.exposed_sums : 1);
}

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
    times.embedding = thirds((work_.embedding_s + stage_launch_s() / 2) * factors.embedding);
    times.head = thirds(head_s() * factors.head);
    times.hop_s = work_.hop_s / c_.hop_efficiency;
    times.network_hop_s =
        work_.network_hop_s / c_.network_efficiency + work_.uplink_s * c_.uplink_waiting;
    times.hop_size = work_.hop_size;
    times.first_end_s = end_s(work_.first_end, times);
    times.middle_end_s = end_s(work_.middle_end, times);
    times.last_end_s = end_s(work_.last_end, times);
    times.only_end_s = end_s(work_.only_end, times);
    times.iteration_s = c_.iteration_s;
    return times;
  }

 private:
  /// The weights' gradients are a third, as nearly all of it is products.
  static PassSeconds thirds(double seconds) { return {seconds / 3, 2 * seconds / 3, seconds / 3}; }
  double memory_s(double at_bandwidth) const { return at_bandwidth / c_.memory_efficiency; }
  double rate() const { return work_.peak * c_.gemm_efficiency; }

  double sum_s() const { return shown_sum_s(work_, c_); }

  double core_s(const LayerWork& layer) const {
    return layer.core_s / (c_.gemm_efficiency * c_.core_efficiency) + memory_s(layer.core_bytes_s);
  }

  PassSeconds layer_pass(const LayerWork& layer, double factor) const {
    double products = 0;
    for (const Product& product : layer.products)
      products += product.flops / rate() * (1 + work_.balance * c_.gemm_saturation / product.side);
    const double forward = core_s(layer) + memory_s(layer.element_bytes_s) + products;
    const double sums = passing_on_s(work_, layer, c_);
    const double again = work_.recomputes_all    ? forward + sums
                         : work_.recomputes_core ? core_s(layer)
                                                 : 0;
    const PassSeconds device{forward + sums, 2 * forward + sums + again};
    const double all = device.forward + device.backward;
    // Where one of the two is much longer, it alone counts.
    const double p = c_.overlap_power;
    const double both = all * std::pow(1 + std::pow(host_s() / all, p), 1 / p);
    const double slower = both / all * factor;
    // The gradients of weights are products alone, as many as forward (Zero Bubble, Table 1).
    return {device.forward * slower, device.backward * slower, products * slower,
            core_s(layer) * slower};
  }

  double host_s() const {
    const double passes = work_.recomputes_all ? 4.0 / 3 : 1;
    return replayed() * passes *
           (c_.layer_launch_s + work_.cut * c_.tensor_launch_s +
            work_.cut_wide * c_.wide_tensor_launch_s + work_.odd_scores * c_.odd_scores_launch_s +
            work_.narrow_heads * c_.narrow_heads_launch_s);
  }

  double head_s() const {
    return stage_launch_s() +
           work_.head_s / c_.gemm_efficiency * (work_.odd_vocabulary ? c_.odd_vocabulary : 1) +
           memory_s(work_.head_bytes_s) + sum_s();
  }

  double replayed() const { return left_of_launch(work_); }
  double stage_launch_s() const { return replayed() * c_.stage_launch_s; }

  double end_s(const StageEndWork& end, const TransformerTimes& times) const {
    const double half = gradient_sum_s(end.sum, c_) / 2;
    const double gradients =
        work_.overlaps_gradients ? exposed_s(half, end, times.layer.backward) : half;
    const double whole =
        work_.overlaps_parameters ? exposed_s(half, end, times.layer.forward) : half;
    return gradients + whole + end.optimizer_s / c_.optimizer_efficiency;
  }

  /// What is left of a sum that takes `sum_s` for a stage, where it begins with the stage's last
  /// pass, layer by layer, and the sums of a rank's stages follow each other. Between two of them
  /// the rank has a pass of each of `pipeline` microbatches. It is not hidden whole: the passes
  /// beside it are slower.
  double exposed_s(double sum_s, const StageEndWork& end, double layer_s) const {
    const double pass = end.layers * layer_s, chunks = work_.chunks;
    const double of_first = sum_s - pass;
    const double of_all = chunks * sum_s - pass - (chunks - 1) * work_.pipeline * pass;
    return std::max({of_first / chunks, of_all / chunks, c_.exposed_reduction * sum_s});
  }

  const TransformerWork& work_;
  const MachineConstants& c_;
};

}  // namespace

double optimizer_s(const Cluster& cluster, double parameters) {
  return at_bandwidth_s(cluster, optimizer_bytes * parameters);
}

TransformerWork transformer_work(const Cluster& cluster, const TransformerTraining& training,
                                 const Cut& cut) {
  return Counting(cluster, training, cut).work();
}

double passing_on_s(const TransformerWork& work, const LayerWork& layer,
                    const MachineConstants& constants) {
  return work.sums.times * shown_sum_s(work, constants) +
         exchanges_s(layer.exchanged, layer.exchanges(), constants) -
         (1 - left_of_launch(work)) * layer.exchanges() * constants.collective_call_s;
}

TransformerTimes transformer_times(const TransformerWork& work, const MachineConstants& constants,
                                   const LayerFactors& factors) {
  return Pricing(work, constants).times(factors);
}

LayerClass layer_class_of(const TransformerTraining& training, const Cut& cut) {
  return {.hidden = training.model.hidden,
          .heads = training.model.heads,
          .sequence = training.sequence,
          .tensor = cut.tensor,
          .microbatch = cut.microbatch,
          .runs = 1};
}

bool same_layers(const LayerClass& a, const LayerClass& b) {
  return a.hidden == b.hidden && a.heads == b.heads && a.sequence == b.sequence &&
         a.tensor == b.tensor && a.microbatch == b.microbatch;
}

}  // namespace pipewright::plan
