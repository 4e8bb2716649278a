#pragma once

// A training by Megatron-LM, with everything that its memory depends on: the model's sizes, the
// parallelism, the options by their meaning, the kind of GPU and the date of the software. It has
// no measured values.

#include <set>
#include <string>

#include "pipewright/plan/model/transformer_training.hpp"
#include "pipewright/plan/partition/cut.hpp"

namespace pipewright::models {

/// Generations of GPUs, whose libraries reserve workspaces of different sizes.
enum class GpuKind { Ampere, Hopper, Blackwell };

/// Decoder: GPT, with or without experts. Encoder: BERT, whose head has additional layers.
/// EncoderDecoder: T5. Hybrid: layers given one by one by a pattern (attention, feed-forward,
/// experts, Mamba).
enum class MegatronFamily { Decoder, Encoder, EncoderDecoder, Hybrid };

/// The value of --attention-backend. Local is Megatron's own core attention, with or without
/// TransformerEngine.
enum class AttentionBackend { Auto, Flash, Fused, Unfused, Local };

/// The implementation of --cross-entropy-loss-fusion.
enum class LossFusion { None, Native, TransformerEngine };

/// The precision of matrix products. Full trains in fp32; Float8 casts the inputs of linear layers.
enum class MegatronPrecision { Full, Half, Float8 };

/// The sizes of a Mamba-2 layer (Dao and Gu, arXiv 2405.21060), as in Megatron's MambaMixer.
struct MambaSizes {
  int heads = 0;
  int head_channels = 64;
  int groups = 8;
  int states = 128;
  int width() const { return heads * head_channels; }
  friend bool operator==(const MambaSizes&, const MambaSizes&) = default;
};

struct MegatronRun {
  plan::TransformerTraining training{};  // the vocabulary is the padded one
  plan::Cut cut{};                       // with the layers of each stage, if they differ
  int rank = 0;                          // the pipeline rank whose memory is computed
  MegatronFamily family = MegatronFamily::Decoder;
  int decoder_sequence = 0;        // for T5
  std::string layer_pattern{};     // for Hybrid: M Mamba, * attention, - feed-forward, E experts
  bool shared_prediction = false;  // all predictions share the first one's layers
  MambaSizes mamba{};

  int optimizer_groups = 1;  // distributed-optimizer instances, each with all shards
  bool bias = true;
  bool attention_dropout = false;
  bool fused_activation = true;  // one kernel from one product's output to the next product's input
  bool fused_weighted_activation = false;  // … which also multiplies by the router's weights
  bool fused_softmax = true;
  bool wide_residual = false;  // fp32 between layers
  bool grouped_experts = false;
  double expert_capacity = 0;  // limit of tokens per expert, relative to the mean; 0: no limit
  MegatronPrecision precision = MegatronPrecision::Half;
  bool float8_parameters = false;     // weights are stored in 8 bits instead of being cast
  bool float8_one_copy = false;       // products need no transposed second copy of a weight
  int gradient_bytes = 4;             // per element of the gradient buffer
  bool keeps_wide_gradients = false;  // fp32 gradients of a precision-aware optimizer persist
  int main_weight_bytes = 4;          // of the optimizer's master weights, per parameter
  int state_bytes = 8;                // momentum and variance together, per parameter

  AttentionBackend attention = AttentionBackend::Auto;
  bool transformer_engine = true;
  bool deterministic = false;
  bool fused_weight_gradients = false;  // --gradient-accumulation-fusion
  LossFusion loss_fusion = LossFusion::None;
  int deferred_head_gradients = 0;            // --wgrad-deferral-limit
  std::set<std::string> recompute_modules{};  // for selective recomputation
  int recompute_layers = 1;                   // for full recomputation: layers per segment
  bool recompute_block = false;               // recompute only the first `recompute_layers` layers

  GpuKind gpu = GpuKind::Hopper;
  long long cublas_workspace = 0;  // bytes, from CUBLAS_WORKSPACE_CONFIG; 0: LibTorch's default
  bool expandable_segments = false;
  int overlap_streams = 1;  // streams that TransformerEngine has a workspace for
  int date = 0;             // of the software, as 20250801
  bool one_node = false;
  bool graphs = false;           // CUDA graphs of attention, dense layers and routers
  bool first_step_only = false;  // the peak was read after the first step
  bool resumed = false;          // the first step starts with the optimizer state of a checkpoint

  int copies() const { return cut.data * cut.context; }
  friend bool operator==(const MegatronRun&, const MegatronRun&) = default;
};

}  // namespace pipewright::models
