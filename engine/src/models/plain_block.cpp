#include "plain_block.hpp"

#include <ATen/ATen.h>

#include "feed_forward.hpp"
#include "pipewright/engine/models/causal_attention.hpp"
#include "pipewright/exec/training/group_sums.hpp"

namespace pipewright::engine {

PlainBlock::PlainBlock(int hidden, int heads, bool causal, const exec::TensorParallelPlace& place,
                       exec::Tokens tokens)
    : place_(place),
      tokens_(tokens),
      head_width_(hidden / heads),
      causal_(causal),
      norm1_(register_module("norm1", GroupNorm(NormSizes{.width = hidden}, place, tokens))),
      norm2_(register_module("norm2", GroupNorm(NormSizes{.width = hidden}, place, tokens))),
      qkv_(register_module("qkv", ColumnLinear(hidden, 3 * hidden, place, 3))),
      project_(
          register_module("project", RowLinear(hidden, hidden, place, /*has_bias=*/true, tokens))),
      up_(register_module("up", ColumnLinear(hidden, 4 * hidden, place))),
      down_(register_module("down",
                            RowLinear(4 * hidden, hidden, place, /*has_bias=*/true, tokens))) {}

at::Tensor PlainBlock::forward(const at::Tensor& input, const exec::CallContext& context) {
  return through(input, [&](std::size_t, const at::Tensor& qkv) {
    return attended(qkv, context.selective_recompute);
  });
}

at::Tensor PlainBlock::next_tokens(const at::Tensor& next, KvCache& memory) {
  return through(next, [&](std::size_t group, const at::Tensor& qkv) {
    const auto parts = qkv.chunk(3, -1);
    return next_attention(parts[0], parts[1], parts[2], {.width = head_width_}, memory, group);
  });
}

/// `attend`: computes the attention of a group from its queries, keys and values.
template <class Attend>
at::Tensor PlainBlock::through(const at::Tensor& input, const Attend& attend) {
  exec::Tensors mixed;
  for (const at::Tensor& qkv :
       qkv_->of_groups(for_own_groups(norm1_->forward(input), place_, tokens_)))
    mixed.push_back(attend(mixed.size(), qkv));
  const at::Tensor seen = input + project_->sum_over(mixed);
  exec::Tensors wide = up_->of_groups(for_own_groups(norm2_->forward(seen), place_, tokens_));
  for (at::Tensor& of_group : wide)
    of_group = at::gelu(of_group);
  return seen + down_->sum_over(wide);
}

/// Computes attention of a group's heads, [batch, tokens, 3 · channels].
at::Tensor PlainBlock::attended(const at::Tensor& qkv, bool core_again) const {
  const auto parts = qkv.chunk(3, -1);
  if (causal_)
    return causal_attention(parts[0], parts[1], parts[2], {.width = head_width_}, core_again);
  const auto heads = [&](const at::Tensor& part) {
    return part.unflatten(-1, {-1, head_width_}).transpose(1, 2);
  };
  return at::scaled_dot_product_attention(heads(parts[0]), heads(parts[1]), heads(parts[2]))
      .transpose(1, 2)
      .flatten(2);
}

std::vector<exec::CutParameter> PlainBlock::cut_parameters() const {
  std::vector<exec::CutParameter> all;
  add_cuts(all, qkv_->cut_parameters("qkv"));
  add_cuts(all, project_->cut_parameters("project"));
  add_cuts(all, up_->cut_parameters("up"));
  add_cuts(all, down_->cut_parameters("down"));
  return all;
}

}  // namespace pipewright::engine
