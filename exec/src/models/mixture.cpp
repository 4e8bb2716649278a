#include "mixture.hpp"

#include <ATen/ATen.h>
#include <torch/nn/init.h>

#include <cmath>

#include "pipewright/exec/training/cut_parameter.hpp"
#include "training/own_memory.hpp"

namespace pipewright::exec {
namespace {

namespace nn = torch::nn;
using Matrix = ExpertLinearImpl::Matrix;

/// What lies along dimension 0, each as a tensor of its own; of an undefined one as many.
Tensors one_by_one(const at::Tensor& stacked, std::size_t count) {
  if (!stacked.defined())
    return Tensors(count);
  Tensors parts;
  for (const at::Tensor& part : stacked.unbind(0))
    parts.push_back(as_one_of_its_own(part));
  return parts;
}

}  // namespace

ExpertLinearImpl::ExpertLinearImpl(const Sizes& sizes, const ShardPlace& place)
    : place_(place),
      dimension_(sizes.dimension),
      whole_(sizes.dimension == 1 ? sizes.out : sizes.in) {
  const auto length = [&](int whole, int dimension) {
    return dimension == dimension_ ? border_of_part(whole, place.index + 1, place.count) -
                                         border_of_part(whole, place.index, place.count)
                                   : whole;
  };
  const double bound = 1 / std::sqrt(sizes.in);  // as LibTorch begins a linear layer
  weight_ = register_parameter(
      "weight", at::empty({sizes.experts, length(sizes.out, 1), length(sizes.in, 2)}));
  nn::init::uniform_(weight_, -bound, bound);
  if (!sizes.has_bias)
    return;
  bias_ = register_parameter("bias", at::empty({sizes.experts, length(sizes.out, 1)}));
  nn::init::uniform_(bias_, -bound, bound);
}

std::vector<CutParameter> ExpertLinearImpl::cut_parameters(const std::string& name) const {
  std::vector<CutParameter> cuts{
      {.name = name + ".weight", .dimension = dimension_, .whole = whole_}};
  if (bias_.defined())
    cuts.push_back({.name = name + ".bias", .dimension = 1, .whole = whole_});
  return cuts;
}

at::Tensor ExpertLinearImpl::Matrix::operator()(const at::Tensor& rows) const {
  return at::linear(rows, weight, bias);
}

std::vector<std::vector<Matrix>> ExpertLinearImpl::of_groups() const {
  const auto cuts = cut_parameters("");
  const Tensors weights = group_parts(weight_, cuts[0], place_);
  const Tensors biases =
      bias_.defined() ? group_parts(bias_, cuts[1], place_) : Tensors(weights.size());
  std::vector<std::vector<Matrix>> groups;
  for (std::size_t own = 0; own < weights.size(); ++own) {
    const Tensors of_expert = one_by_one(weights[own], 0);
    const Tensors bias_of_expert = one_by_one(biases[own], of_expert.size());
    auto& matrices = groups.emplace_back();
    for (std::size_t expert = 0; expert < of_expert.size(); ++expert)
      matrices.push_back({of_expert[expert], bias_of_expert[expert]});
  }
  return groups;
}

MixtureImpl::MixtureImpl(const plan::TransformerConfig& c, const ShardPlace& place, Tokens tokens)
    : place_(place),
      tokens_(tokens),
      experts_(c.experts),
      choices_(c.experts_per_token),
      router_(register_module("router",
                              GroupLinear(c.hidden, c.experts, place, c.router_bias, tokens))) {
  const auto matrices = [&](int in, int out, int dimension) {
    return ExpertLinear(ExpertLinearImpl::Sizes{.experts = c.experts,
                                                .in = in,
                                                .out = out,
                                                .dimension = dimension,
                                                .has_bias = dimension == 1 && c.feed_forward_bias},
                        place);
  };
  up_ = register_module("up", matrices(c.hidden, c.expert_feed_forward, 1));
  if (c.gated)
    gate_ = register_module("gate", matrices(c.hidden, c.expert_feed_forward, 1));
  down_ = register_module("down", matrices(c.expert_feed_forward, c.hidden, 2));
  if (c.feed_forward_bias)
    down_bias_ = register_module("down_bias", GroupLinear(c.experts, c.hidden, place,
                                                          /*has_bias=*/false, tokens));
  if (c.shared_feed_forward > 0)
    shared_ = register_module("shared", FeedForward(c, c.shared_feed_forward, place, tokens));
}

MixtureImpl::Choice MixtureImpl::choose(const at::Tensor& input) const {
  auto [logits, experts] = at::topk(router_->forward(input), choices_);
  // Of a softmax over all experts the same remains, where what was chosen is to make 1.
  return {.experts = experts,
          .weights = at::softmax(logits, -1, at::kFloat).to(input.scalar_type())};
}

Tensors MixtureImpl::rows_of_groups(const Tensors& inputs, const Routing& routing) const {
  const auto ups = up_->of_groups(), downs = down_->of_groups();
  const auto gates = gate_.is_empty() ? decltype(ups)() : gate_->of_groups();
  Tensors all;
  for (std::size_t own = 0; own < inputs.size(); ++own) {
    const at::Tensor rows = in_order_of_experts(inputs[own].flatten(0, 1), routing);
    const auto by_expert = rows.split_with_sizes(routing.counts);
    Tensors outputs;
    for (std::size_t e = 0; e < by_expert.size(); ++e) {
      if (routing.counts[e] == 0)
        continue;
      const at::Tensor its_rows = as_one_of_its_own(by_expert[e]);
      const at::Tensor gate = gates.empty() ? at::Tensor() : gates[own][e](its_rows);
      outputs.push_back(with_own_gradient(downs[own][e](activated(ups[own][e](its_rows), gate))));
    }
    all.push_back(at::cat(outputs));
  }
  return all;
}

at::Tensor MixtureImpl::bias_of(const Choice& choice) const {
  const auto& sizes = choice.weights.sizes();
  const at::Tensor none =
      at::zeros({sizes[0], sizes[1], experts_}, choice.weights.options().requires_grad(false));
  return down_bias_->forward(none.scatter(-1, choice.experts, choice.weights));
}

at::Tensor MixtureImpl::forward(const at::Tensor& input) const {
  const Choice choice = choose(input);
  const Tensors inputs = for_own_groups(input, place_, tokens_);
  const Tensors weights = for_own_groups(choice.weights, place_, tokens_);
  const Routing routing =
      routing_of(for_own_groups(choice.experts, place_, tokens_).front().flatten(0, 1), experts_);
  Tensors sums = rows_of_groups(inputs, routing);
  const Tensors shared = shared_.is_empty() ? Tensors() : shared_->of_groups(inputs);
  for (std::size_t own = 0; own < sums.size(); ++own) {
    const at::Tensor weighted =
        in_order_of_tokens(sums[own], routing) * weights[own].flatten(0, 1).unsqueeze(-1);
    sums[own] = sum_of_choices(weighted).view_as(inputs[own]);
    if (!shared.empty())
      sums[own] = sums[own] + shared[own];
  }
  at::Tensor sum = sum_over_groups(sums, place_, tokens_);
  if (!shared_.is_empty())
    sum = shared_->with_bias(sum);
  return down_bias_.is_empty() ? sum : sum + bias_of(choice);
}

std::vector<CutParameter> MixtureImpl::cut_parameters(const std::string& name) const {
  std::vector<CutParameter> all;
  add_cuts(all, up_->cut_parameters(name + ".up"));
  add_cuts(all, down_->cut_parameters(name + ".down"));
  if (!gate_.is_empty())
    add_cuts(all, gate_->cut_parameters(name + ".gate"));
  if (!shared_.is_empty())
    add_cuts(all, shared_->cut_parameters(name + ".shared"));
  return all;
}

}  // namespace pipewright::exec
