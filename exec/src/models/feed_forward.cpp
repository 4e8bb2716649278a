#include "feed_forward.hpp"

#include <ATen/ATen.h>

namespace pipewright::exec {

void add_cuts(std::vector<CutParameter>& all, const std::vector<CutParameter>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

namespace {

at::Tensor bent(plan::Activation activation, const at::Tensor& value, bool is_gate) {
  switch (activation) {
    case plan::Activation::Usual:
      return is_gate ? at::silu(value) : at::gelu(value);
    case plan::Activation::Silu:
      return at::silu(value);
    case plan::Activation::Gelu:
      return at::gelu(value);
    case plan::Activation::Tanh:
      return at::gelu(value, "tanh");
  }
  return value;
}

}  // namespace

at::Tensor activated(plan::Activation activation, const at::Tensor& wide, const at::Tensor& gates) {
  return gates.defined() ? bent(activation, gates, true) * wide : bent(activation, wide, false);
}

FeedForwardImpl::FeedForwardImpl(const plan::TransformerConfig& c, int width,
                                 const ShardPlace& place, Tokens tokens)
    : place_(place),
      tokens_(tokens),
      activation_(c.activation),
      up_(register_module("up",
                          ColumnLinear(c.hidden, width, place, /*blocks=*/1, c.feed_forward_bias))),
      down_(
          register_module("down", RowLinear(width, c.hidden, place, c.feed_forward_bias, tokens))) {
  if (c.gated)
    gate_ = register_module(
        "gate", ColumnLinear(c.hidden, width, place, /*blocks=*/1, c.feed_forward_bias));
}

at::Tensor FeedForwardImpl::forward(const at::Tensor& input) const {
  return down_->sum_over(activated_groups(for_own_groups(input, place_, tokens_)));
}

Tensors FeedForwardImpl::of_groups(const Tensors& inputs) const {
  return down_->of_groups(activated_groups(inputs));
}

Tensors FeedForwardImpl::activated_groups(const Tensors& inputs) const {
  Tensors wide = up_->of_groups(inputs);
  const Tensors gates = gate_.is_empty() ? Tensors(wide.size()) : gate_->of_groups(inputs);
  for (std::size_t own = 0; own < wide.size(); ++own)
    wide[own] = activated(activation_, wide[own], gates[own]);
  return wide;
}

std::vector<CutParameter> FeedForwardImpl::cut_parameters(const std::string& name) const {
  std::vector<CutParameter> all;
  add_cuts(all, up_->cut_parameters(name + ".up"));
  add_cuts(all, down_->cut_parameters(name + ".down"));
  if (!gate_.is_empty())
    add_cuts(all, gate_->cut_parameters(name + ".gate"));
  return all;
}

}  // namespace pipewright::exec
