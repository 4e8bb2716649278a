#pragma once

// How a training is spread over devices: what is cut among them, in which order microbatches go
// through the stages, and what each device keeps.

#include <string>
#include <string_view>
#include <vector>

#include "pipewright/plan/partition/recompute.hpp"

namespace pipewright::plan {

struct Cut {
  int tensor = 1;                  // devices that cut heads, widths and the vocabulary
  bool sequence_parallel = false;  // between those cuts, they cut the tokens as well
  int context = 1;                 // devices that cut each sequence
  int data = 1;                    // copies of a pipeline, which divide the batch
  int expert = 1;                  // of data · context: devices that share out the experts
  int pipeline = 1;                // ranks of a pipeline
  int chunks = 1;                  // stages of each rank
  std::string schedule{};  // by name; empty: 1F1B, interleaved where a rank has several stages
  std::vector<int> stage_layers{};  // by stage; empty: all have as many
  int microbatch = 1;               // samples
  int zero = 0;                     // the stage of ZeRO
  RecomputeMode recompute = RecomputeMode::None;

  int devices() const { return tensor * context * data * pipeline; }
  int devices_of_stage() const { return tensor * context * data; }
  int stages() const { return pipeline * chunks; }
  /// Of each pipeline, where an iteration has `batch` samples.
  int microbatches(int batch) const { return batch / data / microbatch; }
  /// Where the model has `layers`.
  int layers_of(int stage, int layers) const {
    return stage_layers.empty() ? layers / stages() : stage_layers[static_cast<std::size_t>(stage)];
  }
  std::string_view schedule_name() const {
    if (!schedule.empty())
      return schedule;
    return chunks > 1 ? "interleaved-1f1b" : "1f1b";
  }
  friend bool operator==(const Cut&, const Cut&) = default;
};

}  // namespace pipewright::plan
