#pragma once

// What data sheets do not say of a machine: the constants of the analytic times of a transformer
// (models/transformer/transformer_times.hpp), how sure they are, measured sums over devices, and
// the layers that were measured themselves. `pipewright calibrate` fits them to measured runs.

#include <string>
#include <vector>

namespace pipewright::plan {

/// The plain values are broad guesses for any GPU.
struct MachineConstants {
  double gemm_efficiency = 0.85;  // of a very large product, over the peak
  /// A product of m·k·n takes 1 + this / cbrt(m·k·n) times longer; on a device that computes more
  /// for each byte that its memory gives than an A100, by so many times this.
  double gemm_saturation = 900;
  double core_efficiency = 0.5;          // of attention's two products, over large ones
  double narrow_efficiency = 1;          // of products of 8 bits or fewer, over that of 16
  double memory_efficiency = 0.65;       // of memory-bound work, over the published bandwidth
  double collective_call_s = 200e-6;     // of each sum in a layer, beside its table
  double exposed_sums = 0.5;             // of sums in a layer, where they overlap with its products
  double exposed_reduction = 0.3;        // … of gradients, where they overlap with passes
  double exchange_efficiency = 0.5;      // of tokens among experts in a node, over the link
  double layer_launch_s = 2.6e-3;        // host time of a layer, forward and backward
  double tensor_launch_s = 200e-6;       // more where a layer is cut among devices
  double wide_tensor_launch_s = 600e-6;  // … among eight or more
  double odd_scores_launch_s =
      1e-3;  // more where microbatch × heads of a device is no multiple of 4
  double narrow_heads_launch_s = 250e-6;  // more where a head has fewer than 128 channels
  double overlap_power = 2.7;      // time = (device^p + host^p)^(1/p): large p is a hard maximum
  double stage_launch_s = 1.5e-3;  // host time of the head for a microbatch; half for the embedding
  double odd_vocabulary = 3.5;     // factor of the head's product over an odd vocabulary
  double hop_efficiency = 0.045;   // of a transfer between stages of a node, over its link
  double uplink_waiting = 2;       // see `uplink_share`
  double network_efficiency = 0.7;    // of sums between nodes, over their link
  double reduction_efficiency = 1;    // of gradient sums, over the table
  double bulk_reduction = 1.07;       // rate of sums beyond the table, over its last bus bandwidth
  double optimizer_efficiency = 0.7;  // of memory bandwidth
  double iteration_s = 300e-6;        // once each iteration
  // At the peak of memory, beside what stands and what microbatches keep; bytes of each …
  double context_bytes = 115e6;      // once
  double token_bytes = 7.5;          // activation of the layers' width
  double feed_forward_bytes = 3.7;   // activation of the feed-forward
  double weight_bytes = 4;           // parameter of a layer's largest matrix
  double logit_bytes = 2.8;          // logit
  double head_gradient_bytes = 1.8;  // parameter of the head
  double routed_token_bytes = 4.2;   // activation on its way to experts
  double latent_head_bytes = 4.5;    // activation of latent attention's heads
  friend bool operator==(const MachineConstants&, const MachineConstants&) = default;
};

/// One standard deviation of each constant's logarithm: 0.1 is about 10 %.
struct MachineSpread : MachineConstants {
  MachineSpread();
};

/// When a constant counts, and what it may be.
struct ConstantRule {
  enum class Use { Physics, Schedule, Both, Memory };
  const char* key;
  double MachineConstants::*member;
  double least;
  double most;
  double spread;  // of the plain guess, as in MachineSpread
  /// What is fitted first, from all runs; or what is fitted with the layers that were measured,
  /// because it needs times that are right to a part in a thousand; or what peaks of memory tell.
  Use use;
  const char* meaning;
};
const std::vector<ConstantRule>& constant_rules();

/// Measured sums over the devices of a node, as columns of equal length; bytes rise for each number
/// of ranks.
struct ReductionTable {
  std::vector<double> ranks;
  std::vector<double> bytes;
  std::vector<double> seconds;
  bool empty() const { return ranks.empty(); }
  friend bool operator==(const ReductionTable&, const ReductionTable&) = default;
};
/// What is wrong with it, in words; empty: nothing.
std::string fault_of(const ReductionTable& table);

/// A class of layers that runs were measured of: its times over the analytic ones.
struct LayerClass {
  int hidden = 0;
  int heads = 0;
  int sequence = 0;
  int tensor = 0;
  int microbatch = 0;
  int runs = 0;
  double layer = 1;
  double embedding = 1;
  double head = 1;
  friend bool operator==(const LayerClass&, const LayerClass&) = default;
};

struct Machine {
  MachineConstants constants;
  MachineSpread spread;
  ReductionTable reductions;
  std::vector<LayerClass> layers;
  std::vector<std::string> sources;  // where the figures of the cluster are from
  friend bool operator==(const Machine&, const Machine&) = default;
};

}  // namespace pipewright::plan
