#include "feed_forward.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

namespace pipewright::engine {

void add_cuts(std::vector<exec::CutParameter>& all, const std::vector<exec::CutParameter>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

namespace {

using plan::Activation;

/// Returns LibTorch's name for the kind of GELU.
const char* gelu_word(Activation activation) {
  return activation == Activation::Tanh ? "tanh" : "none";
}

bool is_silu(Activation activation) {
  return activation == Activation::Silu || activation == Activation::Usual;
}

/// Multiplies by the activated gates without saving them: the backward recomputes the activation.
struct Gated : torch::autograd::Function<Gated> {
  static at::Tensor bent(Activation activation, const at::Tensor& gates) {
    return is_silu(activation) ? at::silu(gates) : at::gelu(gates, gelu_word(activation));
  }

  static at::Tensor forward(torch::autograd::AutogradContext* context, Activation activation,
                            const at::Tensor& gates, const at::Tensor& wide) {
    context->save_for_backward({gates, wide});
    context->saved_data["activation"] = static_cast<std::int64_t>(activation);
    return bent(activation, gates) * wide;
  }

  static exec::Tensors backward(torch::autograd::AutogradContext* context,
                                const exec::Tensors& gradients) {
    const exec::Tensors kept = context->get_saved_variables();
    const auto activation = static_cast<Activation>(context->saved_data["activation"].toInt());
    const at::Tensor of_bent = gradients.front() * kept[1];
    return {at::Tensor(),
            is_silu(activation) ? at::silu_backward(of_bent, kept[0])
                                : at::gelu_backward(of_bent, kept[0], gelu_word(activation)),
            gradients.front() * bent(activation, kept[0])};
  }
};

}  // namespace

at::Tensor activated(Activation activation, const at::Tensor& wide, const at::Tensor& gates) {
  if (gates.defined())
    return Gated::apply(activation, gates, wide);
  return activation == Activation::Silu ? at::silu(wide) : at::gelu(wide, gelu_word(activation));
}

FeedForwardImpl::FeedForwardImpl(const plan::TransformerConfig& c, int width,
                                 const exec::TensorParallelPlace& place, exec::Tokens tokens)
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

exec::Tensors FeedForwardImpl::of_groups(const exec::Tensors& inputs) const {
  return down_->of_groups(activated_groups(inputs));
}

exec::Tensors FeedForwardImpl::activated_groups(const exec::Tensors& inputs) const {
  exec::Tensors wide = up_->of_groups(inputs);
  const exec::Tensors gates =
      gate_.is_empty() ? exec::Tensors(wide.size()) : gate_->of_groups(inputs);
  for (std::size_t own = 0; own < wide.size(); ++own)
    wide[own] = activated(activation_, wide[own], gates[own]);
  return wide;
}

std::vector<exec::CutParameter> FeedForwardImpl::cut_parameters(const std::string& name) const {
  std::vector<exec::CutParameter> all;
  add_cuts(all, up_->cut_parameters(name + ".up"));
  add_cuts(all, down_->cut_parameters(name + ".down"));
  if (!gate_.is_empty())
    add_cuts(all, gate_->cut_parameters(name + ".gate"));
  return all;
}

}  // namespace pipewright::engine
