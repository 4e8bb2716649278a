#include "mixture.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/nn/init.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "pipewright/exec/training/cut_parameter.hpp"
#include "pipewright/exec/training/own_memory.hpp"
#include "pipewright/plan/error.hpp"
#include "token_exchange.hpp"

namespace pipewright::engine {
namespace {

namespace nn = torch::nn;
using Matrix = ExpertLinearImpl::Matrix;

/// Splits along dimension 0 into separate tensors. Returns `count` undefined tensors for an
/// undefined one.
exec::Tensors one_by_one(const at::Tensor& stacked, std::size_t count) {
  if (!stacked.defined())
    return exec::Tensors(count);
  exec::Tensors parts;
  for (const at::Tensor& part : stacked.unbind(0))
    parts.push_back(exec::as_one_of_its_own(part));
  return parts;
}

}  // namespace

ExpertLinearImpl::ExpertLinearImpl(const Sizes& sizes, const exec::TensorParallelPlace& place)
    : place_(place),
      dimension_(sizes.dimension),
      experts_(sizes.experts),
      whole_(sizes.dimension == 1 ? sizes.out : sizes.in) {
  const auto length = [&](int whole, int dimension) {
    return dimension == dimension_ ? exec::border_of_part(whole, place.index + 1, place.count) -
                                         exec::border_of_part(whole, place.index, place.count)
                                   : whole;
  };
  const int here = sizes.experts / place.experts.count;
  const double bound = 1 / std::sqrt(sizes.in);  // LibTorch's initialization of a linear layer
  weight_ =
      register_parameter("weight", at::empty({here, length(sizes.out, 1), length(sizes.in, 2)}));
  nn::init::uniform_(weight_, -bound, bound);
  if (!sizes.has_bias)
    return;
  bias_ = register_parameter("bias", at::empty({here, length(sizes.out, 1)}));
  nn::init::uniform_(bias_, -bound, bound);
}

std::vector<exec::CutParameter> ExpertLinearImpl::cut_parameters(const std::string& name) const {
  exec::CutParameter cut{
      .name = name + ".weight", .dimension = dimension_, .whole = whole_, .experts = experts_};
  std::vector<exec::CutParameter> cuts{cut};
  if (bias_.defined()) {
    cut.name = name + ".bias";
    cuts.push_back(cut);
  }
  return cuts;
}

void ExpertLinearImpl::add_aliases(const std::string& name,
                                   std::vector<exec::ParameterAlias>& all) {
  const auto once_more = [](const at::Tensor& parameter) {
    return parameter.defined() ? parameter.detach().requires_grad_() : parameter;
  };
  for (int source = 1; source < place_.experts.count; ++source) {
    const auto at = static_cast<std::size_t>(source) - 1;
    if (weight_of_source_.size() <= at) {
      weight_of_source_.push_back(once_more(weight_));
      bias_of_source_.push_back(once_more(bias_));
    }
    all.push_back({name + ".weight", source, weight_of_source_[at]});
    if (bias_.defined())
      all.push_back({name + ".bias", source, bias_of_source_[at]});
  }
}

at::Tensor ExpertLinearImpl::Matrix::operator()(const at::Tensor& rows) const {
  return at::linear(rows, weight, bias);
}

std::vector<std::vector<Matrix>> ExpertLinearImpl::of_groups(int source) const {
  const auto at = static_cast<std::size_t>(source) - 1;
  const at::Tensor& weight = source == 0 ? weight_ : weight_of_source_.at(at);
  const at::Tensor& bias = source == 0 ? bias_ : bias_of_source_.at(at);
  const auto cuts = cut_parameters("");
  const exec::Tensors weights = exec::group_parts(weight, cuts[0], place_);
  const exec::Tensors biases =
      bias.defined() ? exec::group_parts(bias, cuts[1], place_) : exec::Tensors(weights.size());
  std::vector<std::vector<Matrix>> groups;
  for (std::size_t own = 0; own < weights.size(); ++own) {
    const exec::Tensors of_expert = one_by_one(weights[own], 0);
    const exec::Tensors bias_of_expert = one_by_one(biases[own], of_expert.size());
    auto& matrices = groups.emplace_back();
    for (std::size_t expert = 0; expert < of_expert.size(); ++expert)
      matrices.push_back({of_expert[expert], bias_of_expert[expert]});
  }
  return groups;
}

MixtureImpl::MixtureImpl(const plan::TransformerConfig& c, const exec::TensorParallelPlace& place,
                         exec::Tokens tokens)
    : place_(place),
      tokens_(tokens),
      experts_(c.experts),
      choices_(c.experts_per_token),
      routes_{c.router_scores, c.weights_sum_to_one, c.routed_scale, c.router_groups,
              c.groups_per_token},
      activation_(c.activation),
      router_(register_module(
          "router",
          GroupLinear(c.hidden, c.experts, place,
                      c.router_bias && c.router_scores == plan::RouterScores::Softmax, tokens))) {
  if (c.router_bias && c.router_scores == plan::RouterScores::Sigmoid)
    balance_ = register_parameter("balance", at::zeros({c.experts}), /*requires_grad=*/false);
  if (c.experts % place.experts.count != 0)
    throw plan::InputError(
        fmt::format("pipeline.expert: {} ranks cannot partition {} experts evenly",
                    place.experts.count, c.experts));
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
  const at::Tensor all = router_->forward(input);
  if (routes_.scores != plan::RouterScores::Softmax || !routes_.sum_to_one || routes_.groups > 1)
    return by_scores(all);
  auto [logits, experts] = at::topk(all, choices_);
  // If the chosen weights must sum to 1, a softmax over only the chosen logits gives the same
  // weights.
  const at::Tensor weights = at::softmax(logits, -1, at::kFloat);
  return {
      .experts = experts,
      .weights = (routes_.scale == 1 ? weights : weights * routes_.scale).to(input.scalar_type())};
}

MixtureImpl::Choice MixtureImpl::by_scores(const at::Tensor& logits) const {
  const at::Tensor scores = routes_.scores == plan::RouterScores::Sigmoid
                                ? at::sigmoid(logits.to(at::kFloat))
                                : at::softmax(logits, -1, at::kFloat);
  at::Tensor ranked = scores.detach();
  if (balance_.defined())
    ranked = ranked + balance_;
  if (routes_.groups > 1)
    ranked = in_best_groups(ranked);
  const at::Tensor experts = std::get<1>(at::topk(ranked, choices_));
  at::Tensor weights = scores.gather(-1, experts);
  if (routes_.sum_to_one)
    weights = weights / (weights.sum(-1, /*keepdim=*/true) + 1e-20);
  return {.experts = experts, .weights = (weights * routes_.scale).to(logits.scalar_type())};
}

/// Masks all experts outside the best groups. A group's score is that of its best expert, or with
/// sigmoid scores the sum of its best two (DeepSeek-V3, arXiv 2412.19437).
at::Tensor MixtureImpl::in_best_groups(const at::Tensor& scores) const {
  const at::Tensor groups = scores.unflatten(-1, {routes_.groups, -1});
  const std::int64_t counted = routes_.scores == plan::RouterScores::Sigmoid
                                   ? std::min<std::int64_t>(2, groups.size(-1))
                                   : 1;
  const at::Tensor of_group = std::get<0>(at::topk(groups, counted)).sum(-1);
  const at::Tensor best = std::get<1>(at::topk(of_group, routes_.groups_of_token));
  const at::Tensor others =
      at::ones_like(of_group, of_group.options().dtype(at::kBool)).scatter(-1, best, false);
  return groups.masked_fill(others.unsqueeze(-1), -std::numeric_limits<double>::infinity())
      .flatten(-2);
}

at::Tensor MixtureImpl::Expert::operator()(const at::Tensor& rows) const {
  return down(activated(activation, up(rows), gate.weight.defined() ? gate(rows) : at::Tensor()));
}

/// Returns the experts by group.
std::vector<MixtureImpl::Experts> MixtureImpl::experts_of_groups(int source) const {
  const auto ups = up_->of_groups(source), downs = down_->of_groups(source);
  const auto gates = gate_.is_empty() ? decltype(ups)() : gate_->of_groups(source);
  std::vector<Experts> groups(ups.size());
  for (std::size_t own = 0; own < ups.size(); ++own)
    for (std::size_t e = 0; e < ups[own].size(); ++e)
      groups[own].push_back(
          {ups[own][e], gates.empty() ? Matrix() : gates[own][e], downs[own][e], activation_});
  return groups;
}

/// Applies the experts to their rows. `counts`: rows per expert, by source replica.
at::Tensor MixtureImpl::of_experts(const at::Tensor& rows, const std::vector<Counts>& counts,
                                   const std::vector<const Experts*>& of_source) {
  Counts all;
  for (const Counts& of_one : counts)
    all.insert(all.end(), of_one.begin(), of_one.end());
  const auto pieces = rows.split_with_sizes(all);
  exec::Tensors outputs;
  std::size_t next = 0;
  for (const Experts* const experts : of_source)
    for (const Expert& expert : *experts)
      if (const at::Tensor& piece = pieces[next++]; piece.size(0) > 0)
        outputs.push_back(exec::with_own_gradient(expert(exec::as_one_of_its_own(piece))));
  return outputs.empty() ? rows : at::cat(outputs);
}

exec::Tensors MixtureImpl::rows_of_groups(const exec::Tensors& inputs,
                                          const Routing& routing) const {
  std::vector<std::vector<Experts>> of_source;
  for (int source = 0; source < place_.experts.count; ++source)
    of_source.push_back(experts_of_groups(source));
  std::optional<TokenExchange> exchange;
  if (place_.experts.count > 1)
    exchange.emplace(place_.experts, routing.counts, inputs.front().device());
  exec::Tensors all;
  for (std::size_t own = 0; own < inputs.size(); ++own) {
    std::vector<const Experts*> experts;
    for (const auto& groups : of_source)
      experts.push_back(&groups[own]);
    const at::Tensor rows = in_order_of_experts(inputs[own].flatten(0, 1), routing);
    all.push_back(exchange ? exchange->come_back(
                                 of_experts(exchange->go(rows), exchange->counts_here(), experts))
                           : of_experts(rows, {routing.counts}, experts));
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
  const exec::Tensors inputs = for_own_groups(input, place_, tokens_);
  const exec::Tensors weights = for_own_groups(choice.weights, place_, tokens_);
  const Routing routing =
      routing_of(for_own_groups(choice.experts, place_, tokens_).front().flatten(0, 1), experts_);
  exec::Tensors sums = rows_of_groups(inputs, routing);
  const exec::Tensors shared = shared_.is_empty() ? exec::Tensors() : shared_->of_groups(inputs);
  for (std::size_t own = 0; own < sums.size(); ++own) {
    const at::Tensor weighted =
        in_order_of_tokens(sums[own], routing) * weights[own].flatten(0, 1).unsqueeze(-1);
    sums[own] = sum_of_choices(weighted).view_as(inputs[own]);
    if (!shared.empty())
      sums[own] = sums[own] + shared[own];
  }
  at::Tensor sum = exec::sum_over_groups(sums, place_, tokens_);
  if (!shared_.is_empty())
    sum = shared_->with_bias(sum);
  return down_bias_.is_empty() ? sum : sum + bias_of(choice);
}

std::vector<exec::CutParameter> MixtureImpl::cut_parameters(const std::string& name) const {
  std::vector<exec::CutParameter> all;
  add_cuts(all, up_->cut_parameters(name + ".up"));
  add_cuts(all, down_->cut_parameters(name + ".down"));
  if (!gate_.is_empty())
    add_cuts(all, gate_->cut_parameters(name + ".gate"));
  if (!shared_.is_empty())
    add_cuts(all, shared_->cut_parameters(name + ".shared"));
  return all;
}

std::vector<exec::ParameterAlias> MixtureImpl::aliases(const std::string& name) {
  std::vector<exec::ParameterAlias> all;
  up_->add_aliases(name + ".up", all);
  down_->add_aliases(name + ".down", all);
  if (!gate_.is_empty())
    gate_->add_aliases(name + ".gate", all);
  return all;
}

}  // namespace pipewright::engine
