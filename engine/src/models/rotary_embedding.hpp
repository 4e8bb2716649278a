#pragma once

// Rotary position embeddings (RoPE): pairs of a head's channels are rotated by angles proportional
// to the token's position (Su et al., arXiv 2104.09864).

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "pipewright/plan/model/transformer_config.hpp"

namespace pipewright::engine {

/// Returns the rotation angle per token of each pair of `channels`, in single precision, scaled for
/// a sequence of `length` tokens as the model specifies. `in_window`: for a layer with
/// sliding-window attention.
at::Tensor rotary_speeds(const plan::Rotary& rotary, std::int64_t channels, std::int64_t length,
                         bool in_window);

class RotaryEmbedding {
 public:
  RotaryEmbedding(plan::Rotary rotary, bool in_window)
      : rotary_(std::move(rotary)), in_window_(in_window) {}

  /// A part of a sequence: its first position, and the maximum length of the sequence.
  struct Part {
    std::int64_t first = 0, all = 0;
  };
  /// Rotates [batch, sequence, heads, channels], or the tokens of a part of a sequence.
  at::Tensor operator()(const at::Tensor& heads, const std::optional<Part>& part = {});

 private:
  at::Tensor turned(const at::Tensor& heads, const Part& part);
  bool are_right(const at::Tensor& heads, std::int64_t all) const;
  void make_tables(const at::Tensor& heads, std::int64_t all);

  plan::Rotary rotary_;
  bool in_window_;
  at::Tensor cosine_, sine_;  // [sequence, 1, channels] each, cached
};

/// Returns the sequence length beyond which a model uses other angles for all positions; 0: none.
std::int64_t turns_otherwise_beyond(const plan::Rotary& rotary, bool in_window);

}  // namespace pipewright::engine
