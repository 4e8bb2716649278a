#pragma once

// What the parts of a transformer take on one device, from sizes alone. `transformer_work` counts
// (products, bytes, sums); `transformer_times` prices the counts with a machine's constants. The
// first is done once for a cut, the second for every set of constants that a fit tries.

#include <vector>

#include "pipewright/plan/cluster/cluster.hpp"
#include "pipewright/plan/cluster/collective_times.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/model/transformer_training.hpp"
#include "pipewright/plan/partition/cut.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::models {

/// A matrix product of m·k·n.
struct Product {
  double flops = 0;
  double side = 0;  // cbrt(m·k·n)
};

/// What ends an iteration on a stage: the sum of gradients, and the optimizer. Half of the sum
/// hands each device its shard of the gradients; the other half hands all of them the whole, of the
/// gradients or, under ZeRO, of the parameters that were stepped.
struct StageEndWork {
  plan::SumTime sum;
  double optimizer_s = 0;  // at the memory's bandwidth
  double layers = 0;       // of the stage
  double alone = 0;        // share of the sum that no pass is beside: the last bucket's
};

/// A layer, for one microbatch on one device, forward.
struct LayerWork {
  std::vector<Product> products;
  double core_s = 0;             // attention's two products at the peak
  double core_least_s = 0;       // they take no less
  double core_bytes_s = 0;       // scores, at the memory's bandwidth
  double element_bytes_s = 0;    // norms, residuals, activations, likewise
  plan::ShardTraffic experts;    // of tokens
  plan::ShardTraffic contexts;   // of keys and values
  plan::ExchangeTime exchanged;  // both of them
  int exchanges() const { return experts.times + contexts.times; }
};

/// All of it, for one microbatch on one device.
struct TransformerWork {
  double peak = 0;  // FLOP/s of the products
  double head_peak = 0;
  double balance = 1;  // FLOPs for each byte that its memory gives, over those of an A100
  LayerWork layer;
  LayerWork dense_layer;    // at the front of a mixture
  plan::ShardTraffic sums;  // among the devices that a layer is cut among
  plan::SumTime sum;        // each of them
  double head_s = 0;        // its products at the peak, forward and backward
  double head_bytes_s = 0;
  double embedding_s = 0;
  double hop_s = 0;          // to the next stage, at the bandwidth within a node
  double network_hop_s = 0;  // … at that between nodes
  double uplink_s = 0;       // what it waits there for others, see uplink_waiting
  bool cut = false, cut_wide = false, odd_scores = false, narrow_heads = false;
  bool odd_vocabulary = false, narrow_products = false;
  bool recomputes_all = false, recomputes_core = false;
  bool replays_launches = false, overlaps_sums = false;
  bool overlaps_gradients = false, overlaps_parameters = false;
  int pipeline = 1, chunks = 1;
  double gathered = 1;  // bytes of a parameter that is gathered, over those of its gradient
  /// By whether the stage has the embedding, neither, the head, both.
  StageEndWork first_end, middle_end, last_end, only_end;
  plan::Bytes hop_size{};
};

/// What the optimizer takes to step so many parameters of a device, at the memory's bandwidth.
double optimizer_s(const plan::Cluster& cluster, double parameters);
/// The halves of a stage's sum: of its gradients, and of what all devices get back.
double scattering_s(const StageEndWork& end, const plan::MachineConstants& constants);
double gathering_s(const TransformerWork& work, const StageEndWork& end,
                   const plan::MachineConstants& constants);

TransformerWork transformer_work(const plan::Cluster& cluster,
                                 const plan::TransformerTraining& training, const plan::Cut& cut);

/// What the shards of such a layer take to pass on to each other, forward: sums, where they do not
/// overlap with products, and exchanges. Seconds.
double passing_on_s(const TransformerWork& work, const LayerWork& layer,
                    const plan::MachineConstants& constants);

struct PassSeconds {
  double forward = 0;
  double backward = 0;  // what runs again included
  double weight = 0;    // the part of the backward that makes the weights' gradients
  double core = 0;      // the part of the forward that selective recomputation runs again
};

/// Factors of a measured class of layers.
struct LayerFactors {
  double layer = 1;
  double embedding = 1;
  double head = 1;
};

struct TransformerTimes {
  PassSeconds layer;
  PassSeconds dense_layer;
  PassSeconds embedding;
  PassSeconds head;
  double hop_s = 0;          // within a node
  double network_hop_s = 0;  // between nodes
  plan::Bytes hop_size{};
  double first_end_s = 0, middle_end_s = 0, last_end_s = 0, only_end_s = 0;
  double iteration_s = 0;  // once each iteration, on every rank
};
TransformerTimes transformer_times(const TransformerWork& work,
                                   const plan::MachineConstants& constants,
                                   const LayerFactors& factors = {});

/// The class of layers that is trained.
plan::LayerClass layer_class_of(const plan::TransformerTraining& training, const plan::Cut& cut);
/// Whether two are the same layers, cut the same way.
bool same_layers(const plan::LayerClass& a, const plan::LayerClass& b);

}  // namespace pipewright::models
