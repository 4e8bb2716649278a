#pragma once

// Properties of a machine that data sheets omit: the constants of the analytic model of a
// transformer's times (models/transformer/transformer_times.hpp) with their uncertainty, measured
// all-reduces over the devices of a node, and correction factors for layer shapes that occur in
// measured runs. `pipewright calibrate` fits constants and factors to measured runs.

#include <string>
#include <vector>

namespace pipewright::plan {

/// Constants of the analytic model. The defaults are rough guesses for any GPU. "A, over B" is the
/// ratio A / B, and an efficiency is an achieved rate over a reference rate. Host times are those
/// in which the CPU launches the kernels of a layer or of the head, forward and backward of one
/// microbatch together.
struct MachineConstants {
  double gemm_efficiency = 0.85;  // rate of a very large matrix product, over the device's peak
  /// The time of a product of sizes m, k and n is that at `gemm_efficiency`, times
  /// 1 + r · this / cbrt(m·k·n), where r is the device's FLOPs per byte of memory bandwidth over
  /// those of an A100. For low-precision products r is larger (`saturation_of_rate`).
  double gemm_saturation = 900;
  /// Rate of attention's two products (QKᵀ and its product with V), over that of very large ones.
  double core_efficiency = 0.5;
  /// Efficiency of products of 8 bits or fewer at their own peak, over that of 16-bit products at
  /// theirs: 1 if both achieve the same fraction of their peak.
  double low_precision_efficiency = 1;
  double memory_efficiency = 0.65;    // rate of memory-bound work, over the published bandwidth
  double collective_call_s = 200e-6;  // fixed time of each collective in a layer
  /// Exposed fraction of a layer's all-reduces, if they overlap with its products.
  double exposed_all_reduce = 0.5;
  /// Exposed fraction of gradient reductions and of ZeRO's parameter all-gathers, if they overlap
  /// with forwards and backwards.
  double exposed_reduction = 0.3;
  /// Rate in a node of the all-to-alls among experts and the all-gathers of context parallelism,
  /// over the link's.
  double all_to_all_efficiency = 0.5;
  double layer_launch_s = 2.6e-3;        // host time of a layer
  double tensor_launch_s = 200e-6;       // additional host time of a tensor-parallel layer
  double wide_tensor_launch_s = 600e-6;  // further host time with eight or more such ranks
  /// Additional host time of a layer if microbatch size × heads of a device is not a multiple of 4,
  /// so that the softmax is not fused.
  double unfused_softmax_launch_s = 1e-3;
  double small_heads_launch_s = 250e-6;  // additional if a head has fewer than 128 channels
  /// p in a layer's time (device^p + host^p)^(1/p): 1 gives the sum, a large p the maximum.
  double overlap_power = 2.7;
  double stage_launch_s = 1.5e-3;  // host time of the head; the embedding has half of it
  /// Slowdown of the head's product if the vocabulary size is odd and the head is not partitioned.
  double odd_vocabulary_slowdown = 3.5;
  /// Rate of a point-to-point transfer between stages in one node, over the link's.
  double transfer_efficiency = 0.045;
  double uplink_contention = 2;     // congestion between nodes: see `constant_rules`
  double network_efficiency = 0.7;  // rate of all communication between nodes, over the link's
  /// Rate of gradient all-reduces in a node, over the one in ReductionTable.
  double reduction_efficiency = 1;
  /// Rate of gradient all-reduces larger than those in ReductionTable, over the bus bandwidth of
  /// its largest.
  double large_reduction_efficiency = 1.07;
  double optimizer_efficiency = 0.7;  // rate of the optimizer step, over the memory bandwidth
  double iteration_s = 300e-6;        // fixed time of each iteration
  // Temporary memory at the peak, in addition to static memory and saved activations, in bytes:
  double context_bytes = 115e6;      // per device
  double token_bytes = 7.5;          // per activation element of the hidden size
  double feed_forward_bytes = 3.7;   // per activation element of the feed-forward network
  double weight_bytes = 4;           // per parameter of a layer's largest matrix, for its gradient
  double logit_bytes = 2.8;          // per logit
  double head_gradient_bytes = 1.8;  // per parameter of the head
  double routed_token_bytes = 4.2;   // per activation element routed to experts
  double latent_head_bytes = 4.5;    // per activation element of latent attention's heads
  friend bool operator==(const MachineConstants&, const MachineConstants&) = default;
};

/// The uncertainty of each constant, as one standard deviation of its logarithm: 0.1 is about 10 %.
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
  double spread;  // uncertainty of the default, as in MachineSpread
  /// The fit or fits that adjust the constant. Physics: the first one, to the times of all runs.
  /// Schedule: the second one, together with the factors of layer classes, because these constants
  /// show only if layer times are accurate to 0.1 %. Both: these two. Memory: the one to memory
  /// peaks.
  Use use;
  const char* meaning;
};
const std::vector<ConstantRule>& constant_rules();

/// Measured all-reduces over the devices of a node: columns of equal length, one row for each
/// measurement. Rows with the same number of ranks are adjacent, and their bytes increase.
struct ReductionTable {
  std::vector<double> ranks;
  std::vector<double> bytes;
  std::vector<double> seconds;
  bool empty() const { return ranks.empty(); }
  friend bool operator==(const ReductionTable&, const ReductionTable&) = default;
};
/// Returns an error message if the table is invalid, else an empty string.
std::string fault_of(const ReductionTable& table);

/// A layer shape that occurs in measured runs, with correction factors for its analytic times.
struct LayerClass {
  int hidden = 0;
  int heads = 0;
  int sequence = 0;
  int tensor = 0;      // tensor-parallel size
  int microbatch = 0;  // samples per microbatch
  int runs = 0;        // measured runs with this shape
  /// The fitted factors of the times of a layer, of the embedding and of the head: measured over
  /// analytic.
  double layer = 1;
  double embedding = 1;
  double head = 1;
  friend bool operator==(const LayerClass&, const LayerClass&) = default;
};

/// A calibrated machine: its constants with their uncertainty, measured all-reduces, and factors of
/// layer shapes.
struct Machine {
  MachineConstants constants;
  MachineSpread spread;
  ReductionTable reductions;
  std::vector<LayerClass> layers;
  std::vector<std::string> sources;  // where the figures of the cluster come from
  friend bool operator==(const Machine&, const Machine&) = default;
};

}  // namespace pipewright::plan
