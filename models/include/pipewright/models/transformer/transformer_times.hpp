#pragma once

// The times of a transformer's parts on one device, from sizes alone. `transformer_work` counts
// products, bytes and all-reduces; `transformer_times` prices the counts with a machine's
// constants. Counting is done once per cut, pricing for every set of constants that a fit tries.

#include <vector>

#include "pipewright/plan/cluster/cluster.hpp"
#include "pipewright/plan/cluster/collective_times.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/model/transformer_training.hpp"
#include "pipewright/plan/partition/cut.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::models {

/// A matrix product of sizes m, k and n.
struct Product {
  double flops = 0;
  double side = 0;  // cbrt(m·k·n)
};

/// The work that ends an iteration on a stage: the all-reduce of gradients, and the optimizer. Half
/// of the all-reduce is a reduce-scatter of the gradients. The other half is an all-gather of the
/// gradients or, under ZeRO, of the updated parameters.
struct StageEndWork {
  plan::SumTime sum;
  double optimizer_s = 0;  // at the memory bandwidth
  double layers = 0;       // on the stage
  double alone = 0;        // fraction of the all-reduce that no pass overlaps: the last bucket
};

/// The work of a layer for one microbatch on one device, forward.
struct LayerWork {
  std::vector<Product> products;
  double core_s = 0;           // attention's two products, at the peak
  double core_least_s = 0;     // lower bound of their time
  double core_bytes_s = 0;     // of the scores, at the memory bandwidth
  double element_bytes_s = 0;  // of norms, residuals and activations, at the memory bandwidth
  plan::PartitionCollectives experts;   // all-to-all of tokens
  plan::PartitionCollectives contexts;  // all-gather of keys and values
  plan::ExchangeTime exchanged;         // time of both
  int exchanges() const { return experts.times + contexts.times; }
};

/// All work for one microbatch on one device.
struct TransformerWork {
  double peak = 0;  // FLOP/s of the products
  double head_peak = 0;
  double balance = 1;  // FLOPs per byte of memory bandwidth, relative to an A100
  LayerWork layer;
  LayerWork dense_layer;            // of the leading dense layers in a mixture
  plan::PartitionCollectives sums;  // all-reduces among tensor-parallel ranks
  plan::SumTime sum;                // of each all-reduce
  double head_s = 0;                // products at the peak, forward and backward
  double head_bytes_s = 0;
  double embedding_s = 0;
  double stage_transfer_s = 0;  // transfer to the next stage, at the bandwidth within a node
  double network_hop_s = 0;     // the same at the bandwidth between nodes
  double uplink_s = 0;          // waiting for other transfers on the uplink, see uplink_contention
  bool cut = false, cut_wide = false, odd_scores = false, narrow_heads = false;
  bool odd_vocabulary = false, narrow_products = false;
  bool recomputes_all = false, recomputes_core = false;
  bool replays_launches = false, overlaps_sums = false;
  bool overlaps_gradients = false, overlaps_parameters = false;
  int pipeline = 1, chunks = 1;
  double gathered = 1;  // bytes per gathered parameter, relative to those of its gradient
  /// For stages with the embedding, with neither, with the head, and with both.
  StageEndWork first_end, middle_end, last_end, only_end;
  plan::Bytes hop_size{};
};

/// Returns the time of an optimizer step on a device with this many parameters, at the memory
/// bandwidth.
double optimizer_s(const plan::Cluster& cluster, double parameters);
/// Return the two halves of a stage's all-reduce: the reduce-scatter of gradients, and the
/// all-gather.
double scattering_s(const StageEndWork& end, const plan::MachineConstants& constants);
double gathering_s(const TransformerWork& work, const StageEndWork& end,
                   const plan::MachineConstants& constants);

TransformerWork transformer_work(const plan::Cluster& cluster,
                                 const plan::TransformerTraining& training, const plan::Cut& cut);

/// Returns the seconds that such a layer spends on communication per forward: tensor-parallel
/// all-reduces, as far as they do not overlap with products, and exchanges of tokens, keys and
/// values.
double layer_communication_s(const TransformerWork& work, const LayerWork& layer,
                             const plan::MachineConstants& constants);

struct PassSeconds {
  double forward = 0;
  double backward = 0;  // including recomputation
  double weight = 0;    // the part of the backward that computes weight gradients
  double core = 0;      // the part of the forward that selective recomputation repeats
};

/// Correction factors of a measured class of layers.
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
  double stage_transfer_s = 0;  // within a node
  double network_hop_s = 0;     // between nodes
  plan::Bytes hop_size{};
  double first_end_s = 0, middle_end_s = 0, last_end_s = 0, only_end_s = 0;
  double iteration_s = 0;  // once per iteration, on every rank
};
/// Throws InputError if a time is not finite.
TransformerTimes transformer_times(const TransformerWork& work,
                                   const plan::MachineConstants& constants,
                                   const LayerFactors& factors = {});

/// Returns the class of layers of a training.
plan::LayerClass layer_class_of(const plan::TransformerTraining& training, const plan::Cut& cut);
/// Returns true if both classes have the same layers with the same parallelism.
bool same_layers(const plan::LayerClass& a, const plan::LayerClass& b);

}  // namespace pipewright::models
