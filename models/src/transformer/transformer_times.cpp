#include "pipewright/models/transformer/transformer_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "pipewright/models/transformer/gradient_buckets.hpp"
#include "pipewright/models/transformer/transformer_counts.hpp"
#include "pipewright/plan/cluster/collective_times.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::models {
namespace {

// Known from the implementation, not fitted.
constexpr double half_bytes = 2;            // of an activation, a parameter, a gradient
constexpr double element_passes_whole = 6;  // over 2 bytes of each activation that tensor
                                            // parallelism does not divide
constexpr double element_passes_cut = 8;    // over 2 bytes of each activation that it divides
constexpr double score_bytes = 12;          // written and read per score, forward
constexpr double expert_passes = 6;         // over the tokens routed to experts
constexpr double head_element_bytes = 16;   // per logit, forward and backward
constexpr double embedding_token_s = 0.35e-6;
constexpr double optimizer_bytes = 28;  // per parameter: read and written by Adam
constexpr double narrow_head = 128;     // channels
constexpr int wide_cut = 8;
constexpr double balance_of_guess = 312e12 / 2039e9;  // FLOPs per byte, of the A100
constexpr double replayed_launch = 0.05;  // fraction of a launch's cost that remains if it is
                                          // replayed
constexpr double replayed_call = 0.1;  // the same for a collective: the devices still wait for each
                                       // other
/// Bytes per number that a low-precision product casts: the maximum is found, the number is read
/// and written.
constexpr double bytes_of_cast = 5;
/// Exponent of a product's saturation in its rate relative to 16 bits: from 8-bit products, 4096 to
/// 12288 wide, on an H200 (docs/validation.md). The additional loss of 4 bits has not been
/// measured.
constexpr double saturation_of_rate = 0.75;
/// FLOP/s of deterministic attention, unmasked: that of FlashAttention 2, which Transformer Engine
/// then uses on Blackwell, and no faster on Hopper (docs/validation.md).
constexpr double ordered_core = 420e12;
constexpr double dropout_passes = 2;  // additional, not divided by tensor parallelism: masks, and
                                      // the gradients after them
/// Factor on a link's latency for ring steps that overlap with passes (NCCL, src/graph/tuning.cc,
/// for long rings).
constexpr double busy_ring = 1.9;

Product product(double m, double k, double n) {
  const double volume = m * k * n;
  return {2 * volume, std::cbrt(volume)};
}

/// A product of the attention: k and n before partitioning, and which of the two is divided.
struct Projection {
  double k = 0, n = 0;
  bool cuts_k = false;
};

/// Returns the projections to queries, keys and values, and the output projection; for latent
/// attention (DeepSeek-V2, arXiv 2405.04434) through its ranks. Queries without a rank are
/// projected directly.
std::vector<Projection> projections_of(const plan::TransformerConfig& model) {
  const double h = model.hidden, heads = model.heads, d = model.head_channels;
  if (!model.is_latent())
    return {{h, d * (heads + 2.0 * model.kv_heads)}, {d * heads, h, true}};
  const double q = model.q_rank, kv = model.kv_rank, rope = model.rope_channels;
  const double queries_from = q > 0 ? q : h;
  return {{h, q + kv + rope},
          {queries_from, heads * (d + rope)},
          {kv, heads * 2 * d},
          {heads * d, h, true}};
}

double at_bandwidth_s(const plan::Cluster& cluster, double bytes) {
  return bytes / cluster.device.memory_bandwidth_per_s;
}

class Counting {
 public:
  Counting(const plan::Cluster& cluster, const plan::TransformerTraining& training,
           const plan::Cut& cut)
      : cluster_(cluster), training_(training), model_(training.model), cut_(cut) {}

  TransformerWork work() const {
    TransformerWork work;
    work.peak = peak();
    work.head_peak = cluster_.device.flops_per_s;
    work.narrow_products = rate_of(training_.precision) > 1;
    work.balance = cluster_.device.flops_per_s / cluster_.device.memory_bandwidth_per_s /
                   balance_of_guess *
                   std::pow(std::clamp(rate_of(training_.precision), 1.0, 2.0), saturation_of_rate);
    add_layers(work);
    add_ends_of_model(work);
    add_hop(work);
    add_sums(work);
    work.recomputes_all = cut_.recompute == plan::RecomputeMode::Full;
    work.recomputes_core = cut_.recompute == plan::RecomputeMode::Selective;
    work.replays_launches = training_.replays_launches;
    work.gathered = training_.gathers_float8 && cut_.zero > 0 ? 0.5 : 1;
    work.overlaps_sums = cut_.overlaps_sums;
    work.overlaps_gradients = cut_.overlaps_gradients;
    work.overlaps_parameters = cut_.overlaps_parameters && cut_.zero > 0;
    work.pipeline = cut_.pipeline, work.chunks = cut_.chunks;
    const double embedding = embedding_parameters(training_), head = head_parameters(model_);
    work.first_end = end_of({layers_of(0), embedding, 0}, 1);
    work.middle_end = end_of({most_layers_of_middle(), 0, 0}, 1.0 / cut_.chunks);
    work.last_end = end_of({layers_of(cut_.stages() - 1), 0, head}, cut_.chunks == 1);
    work.only_end = end_of({model_.layers, embedding, head}, 1);
    return work;
  }

 private:
  double peak() const { return rate_of(training_.precision) * cluster_.device.flops_per_s; }
  /// Attention's two products use 16 bits, independent of the precision of the others.
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
    work.odd_scores = training_.attention == plan::AttentionKind::Scores && scores % 4 != 0;
    work.narrow_heads = model_.head_channels < narrow_head;
  }

  LayerWork layer(bool has_experts) const {
    LayerWork layer;
    const double t = cut_.tensor, rows = tokens(), heads = model_.heads / t;
    for (const auto& [k, n, cuts_k] : projections_of(model_)) {
      layer.products.push_back(product(rows, cuts_k ? k / t : k, cuts_k ? n : n / t));
      add_casts(layer, rows * ((cuts_k ? n : k) / whole_cut() + (cuts_k ? k : n) / t));
    }
    const double channels = 2.0 * model_.head_channels + model_.rope_channels;
    const double core = 2 * rows * training_.sequence * heads * channels;
    layer.core_s = core / core_peak();
    layer.core_least_s = training_.repeats_bits ? core / ordered_core : 0;
    if (training_.attention == plan::AttentionKind::Scores)
      layer.core_bytes_s =
          memory_s(score_bytes * cut_.microbatch * heads * training_.sequence * training_.sequence);
    const double whole = element_passes_whole + model_.dropout * dropout_passes;
    const double passes = whole / whole_cut() + element_passes_cut / t;
    layer.element_bytes_s += memory_s(activation_bytes() * passes);
    if (has_experts)
      add_experts(layer);
    else
      add_feed_forward(layer, rows, model_.feed_forward, 1, t);
    add_context(layer);
    return layer;
  }

  /// Returns the number of devices among which tokens are divided where widths are not.
  double whole_cut() const { return cut_.sequence_parallel ? cut_.tensor : 1; }

  /// Adds the casts of a product's inputs in the forward and of its output gradients, if products
  /// have lower precision. Each happens once, and forward plus backward take three times the
  /// counted bytes.
  void add_casts(LayerWork& layer, double elements) const {
    if (rate_of(training_.precision) > 1)
      layer.element_bytes_s += memory_s(bytes_of_cast * elements / 3);
  }

  /// Adds `count` feed-forwards with m rows each, divided among t devices.
  void add_feed_forward(LayerWork& layer, double m, double width, double count, double t) const {
    const double h = model_.hidden, up = (model_.gated ? 2.0 : 1.0) * width / t;
    for (const Product& one : {product(m, h, up), product(m, width / t, h)})
      layer.products.push_back({count * one.flops, one.side});
    add_casts(layer, count * m * (2 * h / whole_cut() + up + width / t));
  }

  /// Adds the all-to-alls of tokens to their experts and back, and the sorting of tokens before and
  /// after, in memory.
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
    layer.experts = {2, plan::whole_bytes(bytes * (cut_.expert - 1.0) / cut_.expert)};
    add_exchange(layer, layer.experts, cut_.expert);
  }

  /// Adds the all-gather of keys and values over context-parallel ranks, without overlap (as in
  /// Megatron-LM).
  void add_context(LayerWork& layer) const {
    if (cut_.context == 1)
      return;
    const double heads = model_.is_latent() ? model_.heads : model_.kv_heads;
    const double bytes = 2 * half_bytes * tokens() * heads * model_.head_channels / cut_.tensor;
    layer.contexts = {1, plan::whole_bytes(bytes * (cut_.context - 1))};
    add_exchange(layer, layer.contexts, cut_.context);
  }

  /// Returns the place of a group of `devices` ranks whose stride is the tensor-parallel size. If
  /// data-parallel replicas are the outermost axis, their stride also includes the pipeline.
  plan::GroupPlace place(int devices) const {
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

  void add_exchange(LayerWork& layer, const plan::PartitionCollectives& traffic,
                    int devices) const {
    const double sent = traffic.times * static_cast<double>(traffic.bytes.value);
    const plan::ExchangeTime time = exchange_time(cluster_, place(devices), sent);
    layer.exchanged.node_s += time.node_s, layer.exchanged.network_s += time.network_s;
  }

  void add_ends_of_model(TransformerWork& work) const {
    const double logits = tokens() * model_.vocabulary / cut_.tensor;
    work.head_s = 6 * model_.hidden * logits / work.head_peak;
    work.head_bytes_s = memory_s(head_element_bytes * logits);
    work.odd_vocabulary = cut_.tensor == 1 && model_.vocabulary % 2 != 0;
    work.embedding_s = embedding_token_s * tokens();
  }

  /// Adds the transfer to the next stage. Several pipelines in one node, and nodes of a stage
  /// beyond the second, wait for each other.
  void add_hop(TransformerWork& work) const {
    work.hop_size = plan::whole_bytes(activation_bytes());
    work.stage_transfer_s = activation_bytes() / cluster_.within_node.bandwidth_per_s;
    const double in_node = cluster_.devices_per_node;
    const double pipelines = in_node / std::min<double>(cut_.tensor, in_node);
    const double nodes = 1.0 * cut_.devices_of_stage() / in_node;
    if (cut_.ranks_beside() * cut_.pipeline <= cluster_.devices_per_node)
      return;
    const plan::Link& link = link_of_level(cluster_, level_of_hop());
    work.network_hop_s = activation_bytes() / link.bandwidth_per_s * link.oversubscription;
    work.uplink_s = (pipelines - 1) * std::max(0.0, nodes - 2) * work.network_hop_s;
  }

  /// Returns the network level of a pipeline that spans several nodes.
  std::size_t level_of_hop() const {
    const int apart = cut_.copies_last ? cut_.ranks_beside() : cut_.devices_of_stage();
    return std::max<std::size_t>(1, level_between(cluster_, 0, apart));
  }

  void add_sums(TransformerWork& work) const {
    if (cut_.tensor == 1)
      return;
    work.sums = {2, plan::whole_bytes(activation_bytes())};
    const plan::GroupPlace shards{.devices = cut_.tensor,
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

  /// The part of the model that a stage has.
  struct StageShare {
    int layers = 0;
    double embedding = 0, head = 0;  // parameters
  };

  double non_expert_parameters() const {
    return layer_parameters(model_) - expert_parameters(model_);
  }

  /// Returns the sizes of a stage's tensors in the order in which a backward completes them: the
  /// head; in each layer the feed-forward, from its end, and the attention's projections; the
  /// embedding.
  std::vector<double> tensors_of(const StageShare& stage) const {
    std::vector<double> of_layer;
    double rest = non_expert_parameters();
    for (const Projection& one : projections_of(model_))
      of_layer.push_back(one.k * one.n), rest -= one.k * one.n;
    const double down = rest / (model_.gated ? 3 : 2);
    of_layer.insert(of_layer.begin(), {down, rest - down});
    std::vector<double> tensors{stage.head};
    for (int layer = 0; layer < stage.layers; ++layer)
      tensors.insert(tensors.end(), of_layer.begin(), of_layer.end());
    tensors.push_back(stage.embedding);
    std::ranges::for_each(tensors, [&](double& tensor) { tensor /= cut_.tensor; });
    return tensors;
  }

  /// ZeRO 2 and 3 reduce the gradients of each microbatch, without buckets.
  bool has_buckets() const { return cut_.overlaps_gradients && cut_.zero < 2; }

  /// `in_buckets`: fraction of such stages that are their rank's first. Megatron-LM does not use
  /// buckets for a rank's later stages.
  StageEndWork end_of(const StageShare& stage, double in_buckets) const {
    const double experts =
        stage.layers * expert_parameters(model_) / (cut_.expert_cut() * cut_.expert);
    const double others =
        (stage.layers * non_expert_parameters() + stage.embedding + stage.head) / cut_.tensor;
    const int copies = cut_.data * cut_.context;
    GradientBuckets buckets{.count = 1, .last = 0};
    if (has_buckets())
      buckets = gradient_buckets(tensors_of(stage), least_bucket(copies));
    const double calls = 1 + in_buckets * (buckets.count - 1);
    StageEndWork end = end_of_copies(others, copies, calls);
    end.layers = stage.layers;
    end.alone = in_buckets * buckets.last;
    const StageEndWork of_experts = end_of_copies(experts, cut_.expert_copies(), calls);
    end.sum.table_s += of_experts.sum.table_s, end.sum.bulk_s += of_experts.sum.bulk_s;
    end.sum.inside_s += of_experts.sum.inside_s, end.sum.steps_s += of_experts.sum.steps_s;
    end.sum.network_s += of_experts.sum.network_s, end.optimizer_s += of_experts.optimizer_s;
    return end;
  }

  /// Under ZeRO, the parameters are gathered after the step: the second half of the same ring.
  StageEndWork end_of_copies(double parameters, int copies, double calls) const {
    if (parameters <= 0)
      return {};
    const double share = cut_.zero > 0 ? copies : 1;
    StageEndWork end;
    end.optimizer_s = optimizer_s(cluster_, parameters / share);
    const plan::GroupPlace where = place(copies);
    end.sum = sum_time(cluster_, where, half_bytes * parameters / calls) * calls;
    if (has_buckets() && (where.spans || end.sum.steps_s > 0))  // otherwise a table includes them
      end.sum.steps_s = busy_ring * calls * ring_steps_s(cluster_, where);
    return end;
  }

  const plan::Cluster& cluster_;
  const plan::TransformerTraining& training_;
  const plan::TransformerConfig& model_;
  const plan::Cut& cut_;
};

/// Returns the fraction of a launch's cost that remains if it is replayed.
double left_of_launch(const TransformerWork& work) {
  return work.replays_launches ? replayed_launch : 1;
}

/// Returns the fraction of a collective's call cost that replaying saves.
double saved_of_call(const TransformerWork& work) {
  return work.replays_launches ? 1 - replayed_call : 0;
}

/// Returns the visible time of one all-reduce among a layer's tensor-parallel ranks.
double shown_sum_s(const TransformerWork& work, const plan::MachineConstants& constants) {
  if (work.sums.times == 0)
    return 0;
  const double sum =
      shard_sum_s(work.sum, constants) - saved_of_call(work) * constants.collective_call_s;
  return sum * (work.overlaps_sums ? constants.exposed_all_reduce : 1);
}

/// Prices the counts with a machine's constants.
class Pricing {
 public:
  Pricing(const TransformerWork& work, const plan::MachineConstants& constants)
      : work_(work), c_(constants) {}

  TransformerTimes times(const LayerFactors& factors) const {
    TransformerTimes times;
    times.layer = layer_pass(work_.layer, factors.layer);
    if (!work_.dense_layer.products.empty())
      times.dense_layer = layer_pass(work_.dense_layer, factors.layer);
    times.embedding = thirds((work_.embedding_s + stage_launch_s() / 2) * factors.embedding);
    times.head = thirds(head_s() * factors.head);
    times.stage_transfer_s = work_.stage_transfer_s / c_.transfer_efficiency;
    times.network_hop_s =
        work_.network_hop_s / c_.network_efficiency + work_.uplink_s * c_.uplink_contention;
    times.hop_size = work_.hop_size;
    times.first_end_s = end_s(work_.first_end, times);
    times.middle_end_s = end_s(work_.middle_end, times);
    times.last_end_s = end_s(work_.last_end, times);
    times.only_end_s = end_s(work_.only_end, times);
    times.iteration_s = c_.iteration_s;
    return times;
  }

 private:
  /// Weight gradients are a third, because nearly all of the time is products.
  static PassSeconds thirds(double seconds) { return {seconds / 3, 2 * seconds / 3, seconds / 3}; }
  double memory_s(double at_bandwidth) const { return at_bandwidth / c_.memory_efficiency; }
  double rate() const {
    return work_.peak * c_.gemm_efficiency *
           (work_.narrow_products ? c_.low_precision_efficiency : 1);
  }

  double sum_s() const { return shown_sum_s(work_, c_); }

  double core_s(const LayerWork& layer) const {
    return std::max(layer.core_s / (c_.gemm_efficiency * c_.core_efficiency), layer.core_least_s) +
           memory_s(layer.core_bytes_s);
  }

  PassSeconds layer_pass(const LayerWork& layer, double factor) const {
    double products = 0;
    for (const Product& product : layer.products)
      if (product.flops > 0)  // without a width there is no product
        products +=
            product.flops / rate() * (1 + work_.balance * c_.gemm_saturation / product.side);
    const double forward = core_s(layer) + memory_s(layer.element_bytes_s) + products;
    const double sums = layer_communication_s(work_, layer, c_);
    const double again = work_.recomputes_all    ? forward + sums
                         : work_.recomputes_core ? core_s(layer)
                                                 : 0;
    const PassSeconds device{forward + sums, 2 * forward + sums + again};
    const double all = device.forward + device.backward;
    // If one of the two is much longer, it alone counts. The remaining cost of replayed launches is
    // between kernels, on the device.
    const double p = work_.replays_launches ? 1 : c_.overlap_power;
    const double both = all * std::pow(1 + std::pow(host_s() / all, p), 1 / p);
    const double slower = both / all * factor;
    // Weight gradients consist only of products, as many as in the forward (Zero Bubble, Table 1).
    return {device.forward * slower, device.backward * slower, products * slower,
            core_s(layer) * slower};
  }

  double host_s() const {
    const double passes = work_.recomputes_all ? 4.0 / 3 : 1;
    return replayed() * passes *
           (c_.layer_launch_s + work_.cut * c_.tensor_launch_s +
            work_.cut_wide * c_.wide_tensor_launch_s +
            work_.odd_scores * c_.unfused_softmax_launch_s +
            work_.narrow_heads * c_.small_heads_launch_s);
  }

  double head_s() const {
    return stage_launch_s() +
           work_.head_s / c_.gemm_efficiency *
               (work_.odd_vocabulary ? c_.odd_vocabulary_slowdown : 1) +
           memory_s(work_.head_bytes_s) + sum_s();
  }

  double replayed() const { return left_of_launch(work_); }
  double stage_launch_s() const { return replayed() * c_.stage_launch_s; }

  double end_s(const StageEndWork& end, const TransformerTimes& times) const {
    const double scatter = scattering_s(end, c_), gather = gathering_s(work_, end, c_);
    const double gradients =
        work_.overlaps_gradients ? exposed_s(scatter, end, times.layer.backward) : scatter;
    const double whole =
        work_.overlaps_parameters ? exposed_s(gather, end, times.layer.forward) : gather;
    return gradients + whole + end.optimizer_s / c_.optimizer_efficiency;
  }

  /// Returns the exposed time of a stage's all-reduce that takes `sum_s`. It starts during the
  /// stage's last pass, layer by layer, and the all-reduces of a rank's stages follow each other.
  /// Between two of them the rank runs one pass of each of `pipeline` microbatches. It is never
  /// hidden completely: it slows the overlapping passes down, and no pass overlaps the last bucket.
  double exposed_s(double sum_s, const StageEndWork& end, double layer_s) const {
    const double pass = end.layers * layer_s, chunks = work_.chunks;
    const double of_first = sum_s - pass;
    const double of_all = chunks * sum_s - pass - (chunks - 1) * work_.pipeline * pass;
    const double shown = end.alone + (1 - end.alone) * c_.exposed_reduction;
    return std::max({of_first / chunks, of_all / chunks, shown * sum_s});
  }

  const TransformerWork& work_;
  const plan::MachineConstants& c_;
};

/// Throws InputError if a time is not finite. Later sums and maxima could hide that.
void require_finite(const TransformerTimes& times) {
  const auto require = [](const char* part, std::initializer_list<double> seconds) {
    for (const double one : seconds)
      if (!std::isfinite(one))
        throw plan::InputError(fmt::format(
            "the time of {} is {} s: the model's sizes or the cluster's constants are too large or "
            "too small to be timed",
            part, one));
  };
  const auto require_pass = [&](const char* part, const PassSeconds& pass) {
    require(part, {pass.forward, pass.backward, pass.weight, pass.core});
  };
  require_pass("a layer", times.layer);
  require_pass("a dense layer", times.dense_layer);
  require_pass("the embedding", times.embedding);
  require_pass("the head", times.head);
  require("a transfer between stages", {times.stage_transfer_s, times.network_hop_s});
  require("the end of an iteration", {times.first_end_s, times.middle_end_s, times.last_end_s,
                                      times.only_end_s, times.iteration_s});
}

}  // namespace

double optimizer_s(const plan::Cluster& cluster, double parameters) {
  return at_bandwidth_s(cluster, optimizer_bytes * parameters);
}

double scattering_s(const StageEndWork& end, const plan::MachineConstants& constants) {
  return gradient_sum_s(end.sum, constants) / 2;
}

double gathering_s(const TransformerWork& work, const StageEndWork& end,
                   const plan::MachineConstants& constants) {
  const double steps = end.sum.steps_s / 2;
  return steps + work.gathered * (scattering_s(end, constants) - steps);
}

TransformerWork transformer_work(const plan::Cluster& cluster,
                                 const plan::TransformerTraining& training, const plan::Cut& cut) {
  return Counting(cluster, training, cut).work();
}

double layer_communication_s(const TransformerWork& work, const LayerWork& layer,
                             const plan::MachineConstants& constants) {
  return work.sums.times * shown_sum_s(work, constants) +
         exchanges_s(layer.exchanged, layer.exchanges(), constants) -
         saved_of_call(work) * layer.exchanges() * constants.collective_call_s;
}

TransformerTimes transformer_times(const TransformerWork& work,
                                   const plan::MachineConstants& constants,
                                   const LayerFactors& factors) {
  const TransformerTimes times = Pricing(work, constants).times(factors);
  require_finite(times);
  return times;
}

plan::LayerClass layer_class_of(const plan::TransformerTraining& training, const plan::Cut& cut) {
  return {.hidden = training.model.hidden,
          .heads = training.model.heads,
          .sequence = training.sequence,
          .tensor = cut.tensor,
          .microbatch = cut.microbatch,
          .runs = 1};
}

bool same_layers(const plan::LayerClass& a, const plan::LayerClass& b) {
  return a.hidden == b.hidden && a.heads == b.heads && a.sequence == b.sequence &&
         a.tensor == b.tensor && a.microbatch == b.microbatch;
}

}  // namespace pipewright::models
