#include "lm_head.hpp"

#include <ATen/ATen.h>

#include "pipewright/exec/training/cut_parameter.hpp"
#include "pipewright/exec/training/group_cross_entropy.hpp"
#include "pipewright/exec/training/group_sums.hpp"

namespace pipewright::engine {

LmHead::LmHead(const Sizes& sizes, const exec::TensorParallelPlace& place, exec::Tokens tokens)
    : place_(place),
      tokens_(tokens),
      cap_(sizes.cap),
      norm_(register_module("norm", GroupNorm(sizes.norm, place, tokens))),
      logits_(register_module("logits", ColumnLinear(sizes.norm.width, sizes.words, place,
                                                     /*blocks=*/1, sizes.has_bias))) {}

exec::Tensors LmHead::forward_all(const exec::Tensors& inputs, const exec::CallContext&) {
  exec::Tensors logits =
      logits_->of_groups(for_own_groups(norm_->forward(inputs.at(0)), place_, tokens_));
  if (cap_ > 0)
    for (at::Tensor& of_group : logits)
      of_group = at::tanh(of_group / cap_) * cap_;
  return logits;
}

at::Tensor LmHead::forward(const at::Tensor& input, const exec::CallContext& context) {
  return at::cat(forward_all({input}, context), -1);
}

at::Tensor LmHead::decode_step(const at::Tensor& next, KvCache&) {
  return forward(next.narrow(1, next.size(1) - 1, 1), {.training = false});
}

std::vector<exec::CutParameter> LmHead::cut_parameters() const {
  return logits_->cut_parameters("logits");
}

decltype(exec::LayerSpec::shard_loss) loss_over_words(std::int64_t words) {
  return [words](const exec::Tensors& outputs, const exec::Tensors& targets,
                 const exec::TensorParallelPlace& place) {
    return exec::cross_entropy_over_groups(outputs, targets.front(), words, place);
  };
}

}  // namespace pipewright::engine
