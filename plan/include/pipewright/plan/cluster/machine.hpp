#pragma once

// Properties of a machine that data sheets omit: the constants of a transformer's analytic times
// (models/transformer/transformer_times.hpp) with their uncertainty, measured all-reduces over
// devices, and classes of layers that were measured directly. `pipewright calibrate` fits them to
// measured runs.

#include <string>
#include <vector>

namespace pipewright::plan {

/// Constants of the analytic model. The defaults are broad guesses for any GPU. An efficiency is a
/// ratio of the achieved rate to the named one.
struct MachineConstants {
  double gemm_efficiency = 0.85;  // rate of a very large matrix product, over the peak
  /// A product of m·k·n takes 1 + this / cbrt(m·k·n) times longer. On a device with more FLOPs per
  /// byte of memory bandwidth than an A100, this is multiplied by that ratio.
  double gemm_saturation = 900;
  double core_efficiency = 0.5;       // rate of attention's two products, over that of large ones
  double narrow_efficiency = 1;       // rate of products of 8 bits or fewer, over that of 16
  double memory_efficiency = 0.65;    // rate of memory-bound work, over the published bandwidth
  double collective_call_s = 200e-6;  // fixed time of each all-reduce in a layer
  /// Exposed fraction of a layer's all-reduces that overlap with products.
  double exposed_sums = 0.5;
  /// Exposed fraction of gradient reductions that overlap with passes.
  double exposed_reduction = 0.3;
  double exchange_efficiency = 0.5;      // rate of an expert all-to-all in a node, over the link's
  double layer_launch_s = 2.6e-3;        // host time of a layer, forward and backward
  double tensor_launch_s = 200e-6;       // additional host time where a layer is tensor-parallel
  double wide_tensor_launch_s = 600e-6;  // … when over eight or more devices
  /// Additional host time where microbatch × heads of a device is not a multiple of 4.
  double odd_scores_launch_s = 1e-3;
  double narrow_heads_launch_s = 250e-6;  // additional where a head has fewer than 128 channels
  double overlap_power = 2.7;  // time = (device^p + host^p)^(1/p): a large p approaches the maximum
  double stage_launch_s = 1.5e-3;   // host time of the head per microbatch; half for the embedding
  double odd_vocabulary = 3.5;      // slowdown of the head's product with an odd vocabulary size
  double hop_efficiency = 0.045;    // rate of a transfer between stages in a node, over its link's
  double uplink_waiting = 2;        // see `constant_rules`
  double network_efficiency = 0.7;  // rate of collectives between nodes, over their link's
  double reduction_efficiency = 1;  // rate of gradient all-reduces, over the table's
  /// Rate of all-reduces beyond the table, over its last bus bandwidth.
  double bulk_reduction = 1.07;
  double optimizer_efficiency = 0.7;  // rate of the optimizer step, over the memory bandwidth
  double iteration_s = 300e-6;        // fixed time of each iteration
  // Temporary memory at the peak, on top of static memory and saved activations. Bytes per …
  double context_bytes = 115e6;      // device (a constant)
  double token_bytes = 7.5;          // activation element of the layer's width
  double feed_forward_bytes = 3.7;   // activation element of the feed-forward network
  double weight_bytes = 4;           // parameter of a layer's largest matrix
  double logit_bytes = 2.8;          // logit
  double head_gradient_bytes = 1.8;  // parameter of the head
  double routed_token_bytes = 4.2;   // activation element routed to experts
  double latent_head_bytes = 4.5;    // activation element of latent attention's heads
  friend bool operator==(const MachineConstants&, const MachineConstants&) = default;
};

/// One standard deviation of each constant's logarithm: 0.1 is about 10 %.
struct MachineSpread : MachineConstants {
  MachineSpread();
};

/// How a constant is fitted, and its valid range.
struct ConstantRule {
  enum class Use { Physics, Schedule, Both, Memory };
  const char* key;
  double MachineConstants::*member;
  double least;
  double most;
  double spread;  // of the default guess, as in MachineSpread
  /// Physics is fitted first, from all runs. Schedule is fitted together with the measured layers,
  /// because it needs times that are accurate to 0.1 %. Both takes part in these two fits. Memory
  /// is fitted to memory peaks.
  Use use;
  const char* meaning;
};
const std::vector<ConstantRule>& constant_rules();

/// Measured all-reduces over the devices of a node, as columns of equal length. Bytes ascend for
/// each number of ranks.
struct ReductionTable {
  std::vector<double> ranks;
  std::vector<double> bytes;
  std::vector<double> seconds;
  bool empty() const { return ranks.empty(); }
  friend bool operator==(const ReductionTable&, const ReductionTable&) = default;
};
/// Returns an error message if the table is invalid, else an empty string.
std::string fault_of(const ReductionTable& table);

/// A class of measured layers, with the ratios of its measured times to the analytic ones.
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

/// A calibrated machine: its constants with their uncertainty, and what was measured directly.
struct Machine {
  MachineConstants constants;
  MachineSpread spread;
  ReductionTable reductions;
  std::vector<LayerClass> layers;
  std::vector<std::string> sources;  // where the figures of the cluster come from
  friend bool operator==(const Machine&, const Machine&) = default;
};

}  // namespace pipewright::plan
