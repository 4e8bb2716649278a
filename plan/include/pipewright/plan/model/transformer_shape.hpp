#pragma once

// A transformer as the model of a scenario: its sizes, the samples that it is trained on, and in
// what it computes. It is planned and predicted from these alone; decoders, dense or with
// mixtures of experts, can be trained as well.

#include <string>
#include <vector>

#include "pipewright/plan/model/model_shape.hpp"
#include "pipewright/plan/model/transformer_training.hpp"

namespace pipewright::plan {

/// What a scenario calls the kinds of attention, in their order.
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

/// What is trained, where an iteration has `batch` samples; and the way back.
TransformerTraining training_of(const TransformerShape& shape, int batch);
TransformerShape shape_of(const TransformerTraining& training);

/// Why shards cannot have so many equal parts of it where it is trained, and how many would do.
std::vector<std::string> faults_of_transformer_cut(const TransformerShape& shape, int parts);

/// The fields that are set to something that nothing trains: dropout, a padded vocabulary, products
/// in 8 bits, written scores, experts of no size, channels that do not make pairs.
std::vector<std::string> only_predicted(const TransformerShape& shape);

}  // namespace pipewright::plan
