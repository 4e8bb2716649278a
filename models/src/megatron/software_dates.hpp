#pragma once

// Days on which the software of measured runs began to hold something else, as 20250801. Found in
// tables of runs: a run from before a day and one from behind it differ by just this.

namespace pipewright::models::megatron {

/// Deterministic runs use kernels that keep no scores; before, --attention-backend was not told and
/// they kept them.
constexpr int deterministic_kernels = 20250601;
/// On Hopper and Blackwell cuDNN is preferred to FlashAttention.
constexpr int cudnn_preferred = 20250715;
/// A router's weights are multiplied inside the experts, and no longer what comes out of them.
constexpr int weights_within_experts = 20250601;
/// What stands for a fused weight gradient is kept, one for each shape.
constexpr int shared_stand_ins = 20250715;

/// LibTorch gives cuBLAS 32 MiB on Blackwell as well. Tests that need one node alone still show the
/// smaller workspace.
constexpr int large_blackwell_workspace = 20260501;

}  // namespace pipewright::models::megatron
