#pragma once

// A training in sizes: a transformer, the tokens per sample, and the samples per iteration. A Cut
// says how it is partitioned over devices.

#include "pipewright/plan/model/transformer_config.hpp"

namespace pipewright::plan {

/// Attention that writes its scores to memory, or a fused kernel that does not.
enum class AttentionKind { Scores, Fused };

/// Precision of matrix products: 16 bits, 8, 4, or 32 (as TF32).
enum class ProductPrecision { Half, Float8, Float4, Single };
/// Returns the rate of such products relative to 16 bits.
double rate_of(ProductPrecision precision);

/// A transformer with the sizes of its training.
struct TransformerTraining {
  TransformerConfig model{};
  int sequence = 1;  // tokens per sample
  int batch = 1;     // samples per iteration
  AttentionKind attention = AttentionKind::Fused;
  ProductPrecision precision = ProductPrecision::Half;
  int gradient_bytes = 4;         // bytes of a parameter's gradient, as accumulated
  bool predictions = false;       // also train the multi-token prediction modules
  bool replays_launches = false;  // replay a whole iteration's launches, as CUDA graphs do
  bool gathers_float8 = false;    // all-gather parameters under ZeRO in 8 bits instead of 16
  bool repeats_bits = false;      // deterministic kernels, whose sums have a fixed order
  friend bool operator==(const TransformerTraining&, const TransformerTraining&) = default;
};

/// Returns the default tokens per sample: 2048, or the number of learned positions if the model has
/// fewer.
int usual_sequence(const TransformerConfig& model);

}  // namespace pipewright::plan
