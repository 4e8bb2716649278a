#pragma once

// Rotary positions: pairs of a head's channels are turned by angles that grow with the token's
// position (Su et al., arXiv 2104.09864).

#include <ATen/core/Tensor.h>

#include "pipewright/plan/model/transformer_config.hpp"

namespace pipewright::exec {

/// How far each pair of `channels` is turned from a token to the next, in single precision, slowed
/// for a sequence of so many tokens as the model does it. `in_window`: of a layer with a window.
at::Tensor rotary_speeds(const plan::Rotary& rotary, std::int64_t channels, std::int64_t length,
                         bool in_window);

class Rotation {
 public:
  Rotation(plan::Rotary rotary, bool in_window)
      : rotary_(std::move(rotary)), in_window_(in_window) {}

  /// [batch, sequence, heads, channels].
  at::Tensor operator()(const at::Tensor& heads);

 private:
  at::Tensor turned(const at::Tensor& heads);
  void make_tables(const at::Tensor& heads);

  plan::Rotary rotary_;
  bool in_window_;
  at::Tensor cosine_, sine_;  // [sequence, 1, channels] each, made once
};

}  // namespace pipewright::exec
