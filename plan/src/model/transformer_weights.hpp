#pragma once

// The weights of a transformer's layers as a list. Parameter counts, tensor-parallel cuts and FLOPs
// are sums over it.

#include <vector>

#include "pipewright/plan/model/transformer_config.hpp"
#include "pipewright/plan/partition/cut.hpp"

namespace pipewright::plan {

/// How a matrix from `in` to `out` channels is partitioned among the ranks of a tensor-parallel
/// group. Columns: each rank has a part of the outputs. Rows: each has a part of the inputs, and
/// the whole bias. KeyColumns: each has some of the key and value heads; several ranks hold the
/// same heads if there are fewer heads than ranks.
enum class WeightCut { Whole, Columns, Rows, KeyColumns };

struct Weight {
  double in = 0, out = 0;
  bool bias = false;
  WeightCut cut = WeightCut::Whole;
  bool multiplied = true;  // false for tables and norms, which need no matrix product
  bool tied = false;       // counted in another layer
  /// Number of experts that each have this matrix; a token uses `used` of them.
  double experts = 0;
  double used = 0;
};

std::vector<Weight> weights_of_embedding(const TransformerConfig& config, int tensor);
std::vector<Weight> weights_of_layer(const TransformerConfig& config, bool sparse);
/// Returns the weights of a multi-token-prediction module, without the embedding and head that it
/// shares.
std::vector<Weight> weights_of_prediction(const TransformerConfig& config);
std::vector<Weight> weights_of_head(const TransformerConfig& config, int tensor);
/// Returns the vocabulary padded so that it divides evenly.
double padded_vocabulary(const TransformerConfig& config, int tensor);

struct WeightTotal {
  double parameters = 0, expert_parameters = 0, active_parameters = 0, tied_parameters = 0;
  double device_parameters = 0, device_expert_parameters = 0;
  double token_flops = 0;         // for one token on one device
  double expert_token_flops = 0;  // the part of token_flops from routed experts
};
/// Sums the weights under the given cut.
WeightTotal weight_total(const std::vector<Weight>& weights, const Cut& cut, int kv_heads = 1);

}  // namespace pipewright::plan
