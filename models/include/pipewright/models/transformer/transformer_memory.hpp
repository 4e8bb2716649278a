#pragma once

// The memory of a rank of a transformer's training, from sizes: what stands, what microbatches in
// flight keep for their backward, and what is at work at the peak. The last is small and depends on
// the software, so its factors are a machine's constants.

#include <vector>

#include "pipewright/models/transformer/pipeline_shape.hpp"
#include "pipewright/plan/cluster/machine.hpp"
#include "pipewright/plan/model/transformer_training.hpp"
#include "pipewright/plan/partition/cut.hpp"

namespace pipewright::models {

struct RankMemory {
  double standing = 0;  // bytes: parameters, gradients, optimizer
  double kept = 0;      // … of all microbatches in flight
  // Counts at the peak, for the constants that they are multiplied with.
  double tokens = 0;           // × channels
  double feed_forward = 0;     // × its channels
  double weights = 0;          // of the largest matrix of a layer
  double logits = 0;           // of the last stage
  double head_parameters = 0;  // likewise
  double routed_tokens = 0;    // × channels
  double latent_heads = 0;     // tokens × channels of the latent attention's heads
};

/// What a layer keeps of a microbatch for its backward, where nothing runs again: all of it, and
/// the scores among it, which selective recomputation drops.
struct LayerKept {
  double all = 0;
  double scores = 0;
};
LayerKept layer_kept(const plan::TransformerTraining& training, const plan::Cut& cut,
                     bool is_dense);
/// The counts of a rank, or of a rank with the last stage.
RankMemory work_at_peak(const plan::TransformerTraining& training, const plan::Cut& cut,
                        bool has_last_stage);
/// … in bytes, without what a device has once.
double bytes_at_peak(const RankMemory& rank, const plan::MachineConstants& constants);

/// By rank. `shape` is that of the cut's schedule.
std::vector<RankMemory> transformer_memory(const plan::TransformerTraining& training,
                                           const plan::Cut& cut, const PipelineShape& shape);
/// The same; throws InputError where the schedule does not take the sizes.
std::vector<RankMemory> transformer_memory(const plan::TransformerTraining& training,
                                           const plan::Cut& cut);
/// The most that any rank holds, in bytes.
double peak_of(const std::vector<RankMemory>& ranks, const plan::MachineConstants& constants);

}  // namespace pipewright::models
