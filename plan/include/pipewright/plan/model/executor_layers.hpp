#pragma once

// What the executor's own layers of a transformer keep for their backward, tensor by tensor, as
// engine/src/models computes them on a CPU. transformer_layers.hpp has the same for fused kernels
// in 16 bits, as a cluster's Megatron-LM has them.

#include <string>
#include <vector>

#include "pipewright/plan/model/transformer_training.hpp"
#include "pipewright/plan/partition/cut.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::plan {

/// Of one microbatch, on one device.
struct KeptTensor {
  const char* what;
  Bytes bytes{};
  bool again = false;  // selective recomputation drops it
  friend bool operator==(const KeptTensor&, const KeptTensor&) = default;
};

struct ExecutorLayer {
  std::string name;
  Bytes input{};  // each layer keeps it, too
  std::vector<KeptTensor> kept;
  Bytes output{};
  double attention_flops = 0;  // tokens with tokens, forward; windows are masks and spare none

  /// Beside the input.
  Bytes activation() const;
  /// The part of it that selective recomputation drops.
  Bytes selective_activation() const;
};

/// The embedding, the layers, norm and head, in values of `value_bytes`: 4, or 2 in mixed
/// precision. Exact without sequence parallelism and expert ranks, for samples of one document,
/// where experts' rows begin at multiples of 64 bytes.
std::vector<ExecutorLayer> executor_layers(const TransformerTraining& training, const Cut& cut,
                                           int value_bytes);

/// What the loss behind the head keeps of a microbatch.
Bytes kept_by_loss(const TransformerTraining& training, const Cut& cut, int value_bytes);

}  // namespace pipewright::plan
