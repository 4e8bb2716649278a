#pragma once

// The weights of a transformer's layers as a list: what is counted, cut and multiplied is a sum
// over it.

#include <vector>

#include "pipewright/plan/model/transformer_config.hpp"
#include "pipewright/plan/partition/cut.hpp"

namespace pipewright::plan {

/// How a matrix from `in` to `out` channels is cut among the devices of a tensor group. Columns:
/// each has some of the outputs; Rows: some of the inputs, and the bias whole; KeyColumns: some of
/// the heads of keys and values, which several devices hold where there are fewer of them.
enum class WeightCut { Whole, Columns, Rows, KeyColumns };

struct Weight {
  double in = 0, out = 0;
  bool bias = false;
  WeightCut cut = WeightCut::Whole;
  bool multiplied = true;  // tables and norms are not
  bool tied = false;       // counted at another layer
  double experts = 0;      // so many of it, of which a token meets `used`
  double used = 0;
};

std::vector<Weight> weights_of_embedding(const TransformerConfig& config, int tensor);
std::vector<Weight> weights_of_layer(const TransformerConfig& config, bool sparse);
/// A module that predicts a further token shares embedding and head: they are not among these.
std::vector<Weight> weights_of_prediction(const TransformerConfig& config);
std::vector<Weight> weights_of_head(const TransformerConfig& config, int tensor);
/// The vocabulary with what it is padded by, so that it divides.
double padded_vocabulary(const TransformerConfig& config, int tensor);

struct WeightTotal {
  double parameters = 0, expert_parameters = 0, active_parameters = 0, tied_parameters = 0;
  double device_parameters = 0, device_expert_parameters = 0;
  double token_flops = 0;         // for one token on one device
  double expert_token_flops = 0;  // the part that routed experts have
};
/// What those numbers of a cut that concern weights make of them.
WeightTotal weight_total(const std::vector<Weight>& weights, const Cut& cut, int kv_heads = 1);

}  // namespace pipewright::plan
