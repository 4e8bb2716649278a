#pragma once

// Parallelism of a training: how devices partition the model and the batch, the pipeline schedule,
// and what each device keeps in memory.

#include <string>
#include <vector>

#include "pipewright/plan/partition/recompute.hpp"

namespace pipewright::plan {

/// The sizes and options of a parallel plan.
struct Cut {
  int tensor = 1;  // tensor-parallel size: devices that partition heads, widths and vocabulary
  bool sequence_parallel = false;  // they also partition the tokens outside of these layers
  int context = 1;                 // context-parallel size: devices that partition each sequence
  int data = 1;           // data-parallel size: replicas of a pipeline, which divide the batch
  int expert = 1;         // expert-parallel size, within a stage
  int expert_tensor = 0;  // devices that partition each expert; 0: `tensor`
  int pipeline = 1;       // ranks of a pipeline
  /// True if the ranks of a pipeline are adjacent, and its replicas far apart.
  bool copies_last = false;
  int chunks = 1;  // stages of each rank
  /// By name; empty: 1F1B, interleaved if a rank has several stages (`schedule_name`)
  std::string schedule{};
  std::vector<int> stage_layers{};  // by stage; empty: all stages have equally many
  int group = 0;       // microbatches of an interleaved schedule's round; 0: one per rank
  int microbatch = 1;  // samples
  int zero = 0;        // ZeRO stage
  bool overlaps_gradients = false;   // gradients are reduced while backwards still run
  bool overlaps_parameters = false;  // parameters are gathered while forwards already run
  bool overlaps_sums = false;        // tensor-parallel all-reduces overlap with matrix products
  bool holds_both_ends = false;  // transfers block compute at both ends, even with several chunks
  RecomputeMode recompute = RecomputeMode::None;

  /// Returns the number of devices that partition an expert.
  int expert_cut() const { return expert_tensor > 0 ? expert_tensor : tensor; }
  /// Returns the number of devices of a stage that have the same experts.
  int expert_copies() const { return devices_of_stage() / (expert_cut() * expert); }
  int devices() const { return tensor * context * data * pipeline; }
  int devices_of_stage() const { return tensor * context * data; }
  /// Returns the number of adjacent devices of a stage, before those of the next stage.
  int ranks_beside() const { return copies_last ? tensor * context : devices_of_stage(); }
  int stages() const { return pipeline * chunks; }
  /// Returns the microbatches of each pipeline for an iteration of `batch` samples.
  int microbatches(int batch) const { return batch / data / microbatch; }
  /// Returns the layers of a stage of a model with `layers` layers.
  int layers_of(int stage, int layers) const {
    return stage_layers.empty() ? layers / stages() : stage_layers[static_cast<std::size_t>(stage)];
  }
  friend bool operator==(const Cut&, const Cut&) = default;
};

}  // namespace pipewright::plan
