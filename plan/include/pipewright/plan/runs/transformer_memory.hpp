#pragma once

// The memory of a rank of a transformer's training, from sizes: what stands, what microbatches in
// flight keep for their backward, and what is at work at the peak. The last is small and depends on
// the software, so its factors are a machine's constants.

#include <vector>

#include "pipewright/plan/cluster/machine.hpp"
#include "pipewright/plan/runs/pipeline_shape.hpp"
#include "pipewright/plan/runs/training_run.hpp"

namespace pipewright::plan {

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

/// By rank. `recompute` counts where the run does not say. `shape` is the one of the run's
/// schedule.
std::vector<RankMemory> transformer_memory(const TrainingRun& run, RunRecompute recompute,
                                           const PipelineShape& shape);
/// The same; throws InputError where the schedule does not take the run's sizes.
std::vector<RankMemory> transformer_memory(const TrainingRun& run, RunRecompute recompute);
/// The most that any rank holds, in bytes.
double peak_of(const std::vector<RankMemory>& ranks, const MachineConstants& constants);

}  // namespace pipewright::plan
