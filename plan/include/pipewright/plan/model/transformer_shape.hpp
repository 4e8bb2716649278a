#pragma once

// A transformer as the model of a scenario: its sizes, the samples that it is trained on, and in
// what it computes. It is planned and predicted from these alone.

#include "pipewright/plan/model/model_shape.hpp"
#include "pipewright/plan/model/transformer_training.hpp"

namespace pipewright::plan {

struct TransformerShape {
  static constexpr auto kind = "transformer";
  TransformerConfig config{.layers = 8,
                           .hidden = 64,
                           .heads = 1,
                           .kv_heads = 1,
                           .head_channels = 64,
                           .value_channels = 64,
                           .feed_forward = 256,
                           .vocabulary = 256};
  int sequence = 2048;  // tokens of a sample
  AttentionKind attention = AttentionKind::Fused;
  ProductPrecision products = ProductPrecision::Half;
  friend bool operator==(const TransformerShape&, const TransformerShape&) = default;
};
template <>
const ModelDescriptor& descriptor_of<TransformerShape>();

/// What is trained, where an iteration has `batch` samples; and the way back.
TransformerTraining training_of(const TransformerShape& shape, int batch);
TransformerShape shape_of(const TransformerTraining& training);

}  // namespace pipewright::plan
