#pragma once

// A training by Megatron-LM, with all that its memory follows from: the sizes of the model, how it
// is cut, its options by their meaning, the kind of GPU and the day of the software. Nothing in it
// is measured.

#include <set>
#include <string>

#include "pipewright/plan/model/transformer_training.hpp"
#include "pipewright/plan/partition/cut.hpp"

namespace pipewright::models {

/// Generations of GPUs whose libraries set aside workspaces of other sizes.
enum class GpuKind { Ampere, Hopper, Blackwell };

/// GPT, with or without experts; BERT, whose head has layers of its own; T5; and stacks whose
/// layers a pattern names one by one (attention, feed-forward, experts, Mamba).
enum class MegatronFamily { Decoder, Encoder, EncoderDecoder, Hybrid };

/// --attention-backend. Local is Megatron's own core, with or without TransformerEngine beside it.
enum class AttentionBackend { Auto, Flash, Fused, Unfused, Local };

/// --cross-entropy-loss-fusion and by whom.
enum class LossFusion { None, Native, TransformerEngine };

/// Of products. Full trains in fp32, Float8 casts what linear layers multiply.
enum class MegatronPrecision { Full, Half, Float8 };

/// Sizes of a Mamba-2 layer (Dao and Gu, arXiv 2405.21060), as Megatron's MambaMixer has them.
struct MambaSizes {
  int heads = 0;
  int head_channels = 64;
  int groups = 8;
  int states = 128;
  int width() const { return heads * head_channels; }
  friend bool operator==(const MambaSizes&, const MambaSizes&) = default;
};

struct MegatronRun {
  plan::TransformerTraining training{};  // its vocabulary is the padded one
  plan::Cut cut{};                       // with the layers of each stage, where they differ
  int rank = 0;                          // of a pipeline: whose memory is asked for
  MegatronFamily family = MegatronFamily::Decoder;
  int decoder_sequence = 0;        // of T5
  std::string layer_pattern{};     // of a hybrid: M Mamba, * attention, - feed-forward, E experts
  bool shared_prediction = false;  // all predictions are of the first one's layers
  MambaSizes mamba{};

  int optimizer_groups = 1;  // copies of the optimizer's shards
  bool bias = true;
  bool attention_dropout = false;
  bool fused_activation = true;  // one kernel from the products to the next product's input
  bool fused_weighted_activation = false;  // … and that multiplies the router's weights, too
  bool fused_softmax = true;
  bool wide_residual = false;  // fp32 between layers
  bool grouped_experts = false;
  double expert_capacity = 0;  // times the mean that an expert takes; 0: all that comes
  MegatronPrecision precision = MegatronPrecision::Half;
  bool float8_parameters = false;     // weights are kept in 8 bits, not cast
  bool float8_one_copy = false;       // products need no second copy of a weight, transposed
  int gradient_bytes = 4;             // of the buffer that gradients are summed in
  bool keeps_wide_gradients = false;  // a precision-aware optimizer's fp32 gradients stay
  int main_weight_bytes = 4;          // of the optimizer's copy
  int state_bytes = 8;                // of its momentum and variance together

  AttentionBackend attention = AttentionBackend::Auto;
  bool transformer_engine = true;
  bool deterministic = false;
  bool fused_weight_gradients = false;  // --gradient-accumulation-fusion
  LossFusion loss_fusion = LossFusion::None;
  int deferred_head_gradients = 0;            // --wgrad-deferral-limit
  std::set<std::string> recompute_modules{};  // of selective recomputation
  int recompute_layers = 1;                   // of full recomputation: that a group has
  bool recompute_block = false;               // … only so many, the first ones

  GpuKind gpu = GpuKind::Hopper;
  long long cublas_workspace = 0;  // bytes, as CUBLAS_WORKSPACE_CONFIG has it; 0: LibTorch's own
  bool expandable_segments = false;
  int overlap_streams = 1;  // that share out TransformerEngine's workspace
  int date = 0;             // of the software, 20250801
  bool one_node = false;
  bool graphs = false;           // of attention, dense layers and routers
  bool first_step_only = false;  // the peak was read behind the first step
  bool resumed = false;          // the first step has the optimizer's state of a checkpoint

  int copies() const { return cut.data * cut.context; }
  friend bool operator==(const MegatronRun&, const MegatronRun&) = default;
};

}  // namespace pipewright::models
