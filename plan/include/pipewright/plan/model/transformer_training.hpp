#pragma once

// What is trained, in sizes: a transformer, on samples of so many tokens, so many of them in an
// iteration. How it is spread over devices is a Cut.

#include "pipewright/plan/model/transformer_config.hpp"

namespace pipewright::plan {

/// Whether the attention writes its scores to memory.
enum class AttentionKind { Scores, Fused };

/// In what matrices are multiplied: 16 bits of a number, 8, 4, or 32 (as TF32).
enum class ProductPrecision { Half, Float8, Float4, Single };
/// The rate of such products over that of 16 bits.
double rate_of(ProductPrecision precision);

struct TransformerTraining {
  TransformerConfig model{};
  int sequence = 1;  // tokens of a sample
  int batch = 1;     // samples of an iteration
  AttentionKind attention = AttentionKind::Fused;
  ProductPrecision precision = ProductPrecision::Half;
  int gradient_bytes = 4;         // of a parameter's gradient, as it is summed up
  bool predictions = false;       // train the modules that predict further tokens as well
  bool replays_launches = false;  // of a whole iteration, as CUDA graphs do
  bool gathers_float8 = false;    // parameters under ZeRO, in 8 bits instead of 16
  bool repeats_bits = false;      // kernels sum in one order, so that a second run gives the same
  friend bool operator==(const TransformerTraining&, const TransformerTraining&) = default;
};

/// Tokens of a sample where nobody says: 2048, or as many as the model has positions for.
int usual_sequence(const TransformerConfig& model);

}  // namespace pipewright::plan
