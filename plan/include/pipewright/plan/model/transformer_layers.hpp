#pragma once

// A transformer's layers, computed from sizes: parameters, FLOPs, bytes and saved activations, of
// the whole model and of one device (Narayanan et al., arXiv 2104.04473; Korthikanti et al.,
// 2205.05198).

#include <string>
#include <vector>

#include "pipewright/plan/model/model.hpp"
#include "pipewright/plan/model/transformer_training.hpp"
#include "pipewright/plan/partition/cut.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::plan {

enum class TransformerLayerKind { Embedding, Dense, Mixture, Prediction, Head };
std::string to_string(TransformerLayerKind kind);

/// Counts of one layer.
struct TransformerLayer {
  std::string name;
  TransformerLayerKind kind = TransformerLayerKind::Dense;

  // Counts over the whole model.
  std::int64_t parameters = 0;
  std::int64_t expert_parameters = 0;  // part that belongs to routed experts
  std::int64_t active_parameters = 0;  // parameters that a token uses
  std::int64_t tied_parameters = 0;    // parameters that another layer has already counted

  // Sizes on one device, for one microbatch.
  std::int64_t device_parameters = 0;
  std::int64_t device_expert_parameters = 0;
  Bytes weights{};             // two bytes for each parameter on the device
  double product_flops = 0;    // forward, tokens with weights; a backward takes twice as many
  double expert_flops = 0;     // part of these in routed experts
  double attention_flops = 0;  // tokens with tokens; grows with the square of the sequence
  Bytes kept{}, kept_selective{}, kept_full{};  // saved for the backward, by recomputation mode
  Bytes output{};

  double forward_flops() const { return product_flops + attention_flops; }
  Bytes kept_under(RecomputeMode mode) const;
  friend bool operator==(const TransformerLayer&, const TransformerLayer&) = default;
};

/// An error message about a Cut that the layers cannot have, with the nearest possible one.
struct CutFault {
  const char* axis;  // tensor, expert, context, sequence_parallel; empty: unrelated to the Cut
  std::string message;
};
std::vector<CutFault> faults_of(const TransformerTraining& training, const Cut& cut);
/// Throws InputError with these messages, if there are any.
void require_cut(const TransformerTraining& training, const Cut& cut);

/// Returns the embedding, the layers, multi-token prediction modules if requested, and norm with
/// head. Throws InputError with the messages of `faults_of`.
std::vector<TransformerLayer> layers_of(const TransformerTraining& training, const Cut& cut = {});

/// Returns the sums over layers, with tied parameters once. `name` and `kind` have no meaning.
TransformerLayer total_of(const std::vector<TransformerLayer>& layers);

/// Returns the number of parameters without multi-token prediction modules, as models publish it.
std::int64_t parameters_of(const TransformerConfig& config);

/// Returns the unpartitioned layers for planning, for a sample of `sequence` tokens.
Model transformer_model(const TransformerConfig& config, int sequence);

}  // namespace pipewright::plan
