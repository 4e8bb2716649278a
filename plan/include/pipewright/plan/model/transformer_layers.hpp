#pragma once

// A transformer by layers: parameters, FLOPs, bytes and the activations that wait for the backward,
// of the whole and of one device, from sizes alone (Narayanan et al., arXiv 2104.04473; Korthikanti
// et al., 2205.05198).

#include <string>
#include <vector>

#include "pipewright/plan/model/model.hpp"
#include "pipewright/plan/model/transformer_training.hpp"
#include "pipewright/plan/partition/cut.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::plan {

enum class TransformerLayerKind { Embedding, Dense, Mixture, Prediction, Head };
std::string to_string(TransformerLayerKind kind);

struct TransformerLayer {
  std::string name;
  TransformerLayerKind kind = TransformerLayerKind::Dense;

  // Counts over the whole model.
  std::int64_t parameters = 0;
  std::int64_t expert_parameters = 0;  // the part that routed experts have
  std::int64_t active_parameters = 0;  // that a token meets
  std::int64_t tied_parameters = 0;    // that another layer has counted already

  // What one device has and does for one microbatch.
  std::int64_t device_parameters = 0;
  std::int64_t device_expert_parameters = 0;
  Bytes weights{};             // two bytes for each of the device's parameters
  double product_flops = 0;    // the forward's, tokens with weights; a backward takes twice that
  double expert_flops = 0;     // the part of these that routed experts have
  double attention_flops = 0;  // tokens with tokens, which grow with the sequence's square
  Bytes kept{}, kept_selective{}, kept_full{};  // for the backward, by recomputation
  Bytes output{};

  double forward_flops() const { return product_flops + attention_flops; }
  Bytes kept_under(RecomputeMode mode) const;
  friend bool operator==(const TransformerLayer&, const TransformerLayer&) = default;
};

/// Why the layers cannot be cut so, and what is nearest; empty: they can.
struct CutFault {
  const char* axis;  // tensor, expert, context; sequence_parallel, or none of them
  std::string message;
};
std::vector<CutFault> faults_of(const TransformerTraining& training, const Cut& cut);
/// Throws InputError with the faults.
void require_cut(const TransformerTraining& training, const Cut& cut);

/// The embedding, the layers, modules that predict further tokens if asked for, norm and head.
/// Throws InputError with the faults.
std::vector<TransformerLayer> layers_of(const TransformerTraining& training, const Cut& cut = {});

/// Sums over layers, with tied parameters once. `name` and `kind` mean nothing.
TransformerLayer total_of(const std::vector<TransformerLayer>& layers);

/// All parameters, without modules that predict further tokens: what is published of a model.
std::int64_t parameters_of(const TransformerConfig& config);

/// For partitions and planning: the uncut layers, for a sample of `sequence` tokens.
Model transformer_model(const TransformerConfig& config, int sequence);

}  // namespace pipewright::plan
