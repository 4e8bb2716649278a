#pragma once

// The memory of a rank of a transformer training, from sizes: persistent state, saved activations
// of microbatches in flight, and the working memory at the peak. The last is small and depends on
// the software, so its factors are constants of the machine.

#include <vector>

#include "pipewright/models/transformer/pipeline_shape.hpp"
#include "pipewright/plan/cluster/machine.hpp"
#include "pipewright/plan/model/transformer_training.hpp"
#include "pipewright/plan/partition/cut.hpp"

namespace pipewright::models {

struct RankMemory {
  double standing = 0;  // bytes: parameters, gradients, optimizer state
  double kept = 0;      // bytes: saved activations of all microbatches in flight
  // Element counts at the peak, each of which is multiplied by a constant.
  double tokens = 0;           // tokens × channels
  double feed_forward = 0;     // tokens × feed-forward channels
  double weights = 0;          // in the largest matrix of a layer
  double logits = 0;           // on the last stage
  double head_parameters = 0;  // on the last stage
  double routed_tokens = 0;    // routed tokens × channels
  double latent_heads = 0;     // tokens × channels of the latent attention's heads
};

/// Bytes that a layer saves per microbatch for its backward without recomputation: in total, and
/// the part for attention scores, which selective recomputation drops.
struct LayerKept {
  double all = 0;
  double scores = 0;
};
LayerKept layer_kept(const plan::TransformerTraining& training, const plan::Cut& cut,
                     bool is_dense);
/// Returns the counts at the peak of a rank, with or without the last stage.
RankMemory work_at_peak(const plan::TransformerTraining& training, const plan::Cut& cut,
                        bool has_last_stage);
/// Returns the counts in bytes, without memory that a device needs only once.
double bytes_at_peak(const RankMemory& rank, const plan::MachineConstants& constants);

/// Returns the memory of each rank. `shape` is that of the cut's schedule.
std::vector<RankMemory> transformer_memory(const plan::TransformerTraining& training,
                                           const plan::Cut& cut, const PipelineShape& shape);
/// Returns the memory of each rank. Throws InputError if the schedule does not support the sizes.
std::vector<RankMemory> transformer_memory(const plan::TransformerTraining& training,
                                           const plan::Cut& cut);
/// Returns the maximum over all ranks, in bytes.
double peak_of(const std::vector<RankMemory>& ranks, const plan::MachineConstants& constants);

}  // namespace pipewright::models
