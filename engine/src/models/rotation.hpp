#pragma once

// Rotary positions: pairs of a head's channels are turned by angles that grow with the token's
// position (Su et al., arXiv 2104.09864).

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "pipewright/plan/model/transformer_config.hpp"

namespace pipewright::engine {

/// How far each pair of `channels` is turned from a token to the next, in single precision, slowed
/// for a sequence of so many tokens as the model does it. `in_window`: of a layer with a window.
at::Tensor rotary_speeds(const plan::Rotary& rotary, std::int64_t channels, std::int64_t length,
                         bool in_window);

class Rotation {
 public:
  Rotation(plan::Rotary rotary, bool in_window)
      : rotary_(std::move(rotary)), in_window_(in_window) {}

  /// Of a sequence: where it begins, and how many tokens the sequence will have at most.
  struct Part {
    std::int64_t first = 0, all = 0;
  };
  /// [batch, sequence, heads, channels], or those of a part of a sequence.
  at::Tensor operator()(const at::Tensor& heads, const std::optional<Part>& part = {});

 private:
  at::Tensor turned(const at::Tensor& heads, const Part& part);
  bool are_right(const at::Tensor& heads, std::int64_t all) const;
  void make_tables(const at::Tensor& heads, std::int64_t all);

  plan::Rotary rotary_;
  bool in_window_;
  at::Tensor cosine_, sine_;  // [sequence, 1, channels] each, made once
};

/// The length beyond which a model turns all positions of a sequence otherwise; 0: none.
std::int64_t turns_otherwise_beyond(const plan::Rotary& rotary, bool in_window);

}  // namespace pipewright::engine
