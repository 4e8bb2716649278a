#pragma once

// How a training is spread over devices: what is cut among them, in which order microbatches go
// through the stages, and what each device keeps.

#include <string>
#include <vector>

#include "pipewright/plan/partition/recompute.hpp"

namespace pipewright::plan {

struct Cut {
  int tensor = 1;                  // devices that cut heads, widths and the vocabulary
  bool sequence_parallel = false;  // between those cuts, they cut the tokens as well
  int context = 1;                 // devices that cut each sequence
  int data = 1;                    // copies of a pipeline, which divide the batch
  int expert = 1;                  // devices of a stage that share out the experts
  int expert_tensor = 0;           // devices that cut each expert; 0: as many as cut the rest
  int pipeline = 1;                // ranks of a pipeline
  bool copies_last =
      false;               // whether the ranks of a pipeline lie beside each other, and copies far
  int chunks = 1;          // stages of each rank
  std::string schedule{};  // by name; empty: 1F1B, interleaved where a rank has several stages
                           // (`schedule_name`)
  std::vector<int> stage_layers{};  // by stage; empty: all have as many
  int group = 0;       // microbatches of an interleaved schedule's round; 0: one a rank
  int microbatch = 1;  // samples
  int zero = 0;        // the stage of ZeRO
  bool overlaps_gradients = false;   // sums them while backwards still run
  bool overlaps_parameters = false;  // gathers them while forwards run already
  bool overlaps_sums = false;        // of a layer's shards, with its products
  bool holds_both_ends = false;      // during a transfer, of stages of several chunks too
  RecomputeMode recompute = RecomputeMode::None;

  /// Devices that cut an expert.
  int expert_cut() const { return expert_tensor > 0 ? expert_tensor : tensor; }
  /// Devices of a stage that have the same experts.
  int expert_copies() const { return devices_of_stage() / (expert_cut() * expert); }
  int devices() const { return tensor * context * data * pipeline; }
  int devices_of_stage() const { return tensor * context * data; }
  /// Devices of a stage that lie beside each other, before those of the next stage.
  int ranks_beside() const { return copies_last ? tensor * context : devices_of_stage(); }
  int stages() const { return pipeline * chunks; }
  /// Of each pipeline, where an iteration has `batch` samples.
  int microbatches(int batch) const { return batch / data / microbatch; }
  /// Where the model has `layers`.
  int layers_of(int stage, int layers) const {
    return stage_layers.empty() ? layers / stages() : stage_layers[static_cast<std::size_t>(stage)];
  }
  friend bool operator==(const Cut&, const Cut&) = default;
};

}  // namespace pipewright::plan
