#pragma once

// The stages of one rank, layer by layer, by the cut's counts or by the pattern of a hybrid.

#include <vector>

#include "pipewright/models/megatron/megatron_run.hpp"

namespace pipewright::models::megatron {

/// What a layer is made of; each part has a norm and adds to the residual stream.
enum class Part { Attention, CrossAttention, FeedForward, Experts, Mamba };

struct Layer {
  std::vector<Part> parts;
  bool decodes = false;  // of T5: it sees the decoder's tokens
};

struct RankStage {
  std::vector<Layer> layers{};
  bool embedding = false;
  bool loss = false;
  std::vector<std::vector<Layer>> predictions{};  // by depth
};

/// By chunk. Throws InputError where layers and stages do not fit.
std::vector<RankStage> rank_stages(const MegatronRun& run);

}  // namespace pipewright::models::megatron
