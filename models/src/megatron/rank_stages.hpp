#pragma once

// The layers of each stage of one rank, by the cut's counts or by a hybrid's pattern.

#include <vector>

#include "pipewright/models/megatron/megatron_run.hpp"

namespace pipewright::models::megatron {

/// A component of a layer. Each has a norm and adds to the residual stream.
enum class Part { Attention, CrossAttention, FeedForward, Experts, Mamba };

struct Layer {
  std::vector<Part> parts;
  bool decodes = false;  // for T5: it processes the decoder's tokens
};

struct RankStage {
  std::vector<Layer> layers{};
  bool embedding = false;
  bool loss = false;
  std::vector<std::vector<Layer>> predictions{};  // per depth
};

/// Returns the stages of the run's rank, by chunk. Throws InputError if layers and stages do not
/// fit together.
std::vector<RankStage> rank_stages(const MegatronRun& run);

}  // namespace pipewright::models::megatron
