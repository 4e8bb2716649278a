#pragma once

// A transformer as the model of a scenario: its sizes, its samples, and its compute precision. It
// can be planned and predicted from these alone; decoders, dense or with mixtures of experts, can
// also be trained.

#include <string>
#include <vector>

#include "pipewright/plan/model/model_shape.hpp"
#include "pipewright/plan/model/transformer_training.hpp"

namespace pipewright::plan {

/// Returns the names of the kinds of attention in a scenario, in the order of the enumeration.
const std::vector<std::string>& attention_kinds();

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

/// Convert between a scenario's shape and the training with `batch` samples per iteration.
TransformerTraining training_of(const TransformerShape& shape, int batch);
TransformerShape shape_of(const TransformerTraining& training);

/// Returns why a trainable model cannot be partitioned into `parts` equal parts, and the nearest
/// numbers that work.
std::vector<std::string> faults_of_transformer_cut(const TransformerShape& shape, int parts);

/// Returns the fields whose values cannot be trained: dropout, a padded vocabulary, products in 8
/// bits, materialized scores, experts of size zero, channels that do not form pairs.
std::vector<std::string> only_predicted(const TransformerShape& shape);

}  // namespace pipewright::plan
