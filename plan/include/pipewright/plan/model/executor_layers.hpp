#pragma once

// Saved activations of the executor's own transformer layers, tensor by tensor, as
// engine/src/models computes them on a CPU. transformer_layers.hpp has the same for fused 16-bit
// kernels, as in Megatron-LM on a cluster.

#include <string>
#include <vector>

#include "pipewright/plan/model/transformer_training.hpp"
#include "pipewright/plan/partition/cut.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::plan {

/// A tensor that one microbatch saves on one device.
struct SavedTensor {
  const char* what;
  Bytes bytes{};
  bool again = false;  // selective recomputation drops it
  friend bool operator==(const SavedTensor&, const SavedTensor&) = default;
};

/// A layer with the tensors that it saves.
struct ExecutorLayer {
  std::string name;
  Bytes input{};  // also saved by each layer
  std::vector<SavedTensor> kept;
  Bytes output{};
  /// Forward attention products (scores and values); windows are applied as masks and save no
  /// FLOPs.
  double attention_flops = 0;

  /// Returns the saved bytes, without the input.
  Bytes activation() const;
  /// Returns the part that selective recomputation drops.
  Bytes selective_activation() const;
};

/// Returns the embedding, the layers, and norm with head, with values of `value_bytes` bytes: 4, or
/// 2 in mixed precision. Exact without sequence and expert parallelism, for samples of one
/// document, if the rows of each expert begin at multiples of 64 bytes.
std::vector<ExecutorLayer> executor_layers(const TransformerTraining& training, const Cut& cut,
                                           int value_bytes);

/// Returns what the loss after the head saves for one microbatch.
Bytes kept_by_loss(const TransformerTraining& training, const Cut& cut, int value_bytes);

}  // namespace pipewright::plan
