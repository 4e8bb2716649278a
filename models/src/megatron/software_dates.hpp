#pragma once

// Dates, as 20250801, from which the software of measured runs uses memory differently. Found in
// tables of runs: a run before and one after such a date differ by exactly this.

namespace pipewright::models::megatron {

/// Deterministic runs use kernels that do not save scores. Before, --attention-backend was not
/// given, and scores were saved.
constexpr int deterministic_kernels = 20250601;
/// On Hopper and Blackwell, cuDNN is preferred to FlashAttention.
constexpr int cudnn_preferred = 20250715;
/// The router's weights are multiplied inside the experts instead of on their output.
constexpr int weights_within_experts = 20250601;
/// The placeholder of a fused weight gradient is kept, one per shape.
constexpr int shared_stand_ins = 20250715;

/// LibTorch gives cuBLAS 32 MiB on Blackwell as well. Tests on a single node still show the smaller
/// workspace.
constexpr int large_blackwell_workspace = 20260501;

}  // namespace pipewright::models::megatron
