// A GPT small enough that a step takes milliseconds, on synthetic data that is a function of step
// and microbatch.
#pragma once

#include <ATen/ATen.h>

#include "pipewright/engine/models/gpt.hpp"
#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/plan/generators/generators.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/model/gpt_model.hpp"
#include "pipewright/plan/partitioners/balanced.hpp"

namespace pipewright::test {

inline const plan::GptShape small_shape{
    .blocks = 4, .hidden = 16, .heads = 2, .sequence = 8, .vocabulary = 32};

class SyntheticTokens final : public exec::Dataset {
 public:
  at::Tensor input(int step, int microbatch) const override {
    const at::Tensor position = at::arange(16, at::kLong).view({2, 8});
    return (position * 7 + step * 5 + microbatch * 11) % 32;
  }
  at::Tensor target(int step, int microbatch) const override {
    return (input(step, microbatch) * 3 + 1) % 32;
  }
};

inline exec::TrainingSetup small_setup() {
  static const SyntheticTokens data;
  return {.layers = engine::gpt_layers(small_shape),
          .loss = exec::cross_entropy,
          .data = &data,
          .optimizer = {},
          .base_seed = 3};
}

/// Partitions the six layers into `parts` stages, one per rank.
inline plan::Partition small_partition(int parts) {
  return plan::Partition{plan::uniform_boundaries(6, parts)};
}

}  // namespace pipewright::test
