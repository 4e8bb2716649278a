// Routing of a mixture's tokens, and gradients of experts with any number of tokens.

#include "models/mixture.hpp"

#include <ATen/ATen.h>

#include "exec/support/run_layers.hpp"
#include "exec/support/small_transformers.hpp"
#include "support/catch.hpp"

namespace mixture_test {

using namespace pipewright;
using namespace pipewright::engine;
using namespace pipewright::exec;

TEST_CASE("Choices are sorted by expert, and by token within one", "[exec][models]") {
  const Routing routing = routing_of(at::tensor({2, 0, 0, 3, 2, 3}, at::kLong).view({3, 2}), 5);
  CHECK(routing.counts == std::vector<std::int64_t>{2, 0, 2, 2, 0});
  CHECK(at::equal(routing.order, at::tensor({1, 2, 0, 4, 3, 5}, at::kLong)));
  const at::Tensor tokens = at::tensor({10.0, 11.0, 12.0}).view({3, 1});
  const at::Tensor rows = in_order_of_experts(tokens, routing);
  CHECK(at::equal(rows.flatten(), at::tensor({10.0, 11.0, 10.0, 12.0, 11.0, 12.0})));
  CHECK(at::equal(in_order_of_tokens(rows, routing).squeeze(-1),
                  at::tensor({10.0, 10.0, 11.0, 11.0, 12.0, 12.0}).view({3, 2})));
}

TEST_CASE("Gradients of a token's choices are summed in their order", "[exec][models]") {
  const Routing routing = routing_of(at::tensor({2, 0, 1}, at::kLong).view({1, 3}), 3);
  const at::Tensor token = at::ones({1, 1}).requires_grad_();
  // By expert. As choices they are 1, 1e8 and -1e8: in another order the sum is 1.
  const at::Tensor gradient = at::tensor({1e8, -1e8, 1.0}, at::kFloat).view({3, 1});
  in_order_of_experts(token, routing).backward(gradient);
  CHECK(token.grad().item<float>() == 0);
}

plan::TransformerConfig config_of(int experts, int per_token) {
  plan::TransformerConfig config = test::small_mixture().config;
  config.experts = experts;
  config.experts_per_token = per_token;
  return config;
}

at::Tensor waves() { return at::sin(at::arange(2 * 7 * 20, at::kFloat)).view({2, 7, 20}); }

/// Returns a mixture that routes all tokens to the last experts.
Mixture unbalanced(const plan::TransformerConfig& config) {
  at::manual_seed(3);
  plan::TransformerConfig with_bias = config;
  with_bias.router_bias = true;
  Mixture mixture(with_bias, TensorParallelPlace{}, Tokens::Whole);
  const at::NoGradGuard no_grad;
  mixture->named_parameters()["router.bias"].copy_(100 * at::arange(config.experts));
  return mixture;
}

TEST_CASE("Experts without tokens have a gradient of zero", "[exec][models]") {
  Mixture mixture = unbalanced(config_of(5, 2));
  const at::Tensor input = waves().requires_grad_();
  mixture->forward(input).square().sum().backward();
  CHECK(input.grad().abs().sum().item<double>() > 0);
  int seen = 0;
  for (const auto& named : mixture->named_parameters()) {
    INFO(named.key());
    REQUIRE(named.value().grad().defined());
    if (named.value().dim() != 3)
      continue;
    for (int expert = 0; expert < 5; ++expert)
      CHECK((at::count_nonzero(named.value().grad()[expert]).item<int>() > 0) == (expert >= 3));
    ++seen;
  }
  CHECK(seen == 3);
}

TEST_CASE("An expert that receives all tokens equals a feed-forward", "[exec][models]") {
  plan::TransformerConfig config = config_of(4, 1);
  config.shared_feed_forward = 0;
  Mixture mixture = unbalanced(config);
  FeedForward alone(config, config.expert_feed_forward, TensorParallelPlace{}, Tokens::Whole);
  const auto experts = mixture->named_parameters();
  {
    const at::NoGradGuard no_grad;
    for (auto& named : alone->named_parameters())
      named.value().copy_(experts[named.key()][3]);
  }
  const at::Tensor input = waves(), mixed = mixture->forward(input), fed = alone->forward(input);
  CHECK(at::allclose(mixed, fed, 1e-5, 1e-6));
  mixed.square().sum().backward();
  fed.square().sum().backward();
  for (const auto& named : alone->named_parameters())
    CHECK(at::allclose(experts[named.key()].grad()[3], named.value().grad(), 1e-5, 1e-6));
}

}  // namespace mixture_test
