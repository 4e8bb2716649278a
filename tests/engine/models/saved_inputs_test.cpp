// Norms, gates and attention that save less than LibTorch's own, with the same gradients.

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <optional>

#include "models/feed_forward.hpp"
#include "models/fused_attention.hpp"
#include "models/root_norm.hpp"
#include "support/catch.hpp"

namespace saved_inputs_test {

using namespace pipewright;
using namespace pipewright::engine;
using namespace pipewright::exec;

using Work = at::Tensor (*)(const Tensors&);

Tensors gradients(const Work& work, const Tensors& inputs, at::ScalarType type) {
  Tensors leaves;
  for (const at::Tensor& input : inputs)
    leaves.push_back(input.to(type).detach().requires_grad_());
  const at::Tensor output = work(leaves);
  at::Tensor weights = at::arange(output.numel(), at::kFloat).sin().view(output.sizes());
  Tensors all = torch::autograd::grad({output}, leaves, {weights.to(type)});
  all.push_back(output.detach());
  for (at::Tensor& tensor : all)
    tensor = tensor.to(at::kDouble);
  return all;
}

/// In double precision, both kinds of kernels must give the same function. The own kernels in 16
/// bits must be as close to it as 16 bits allow.
void check_equal(const Work& own, const Work& plain, const Tensors& inputs) {
  const Tensors expected = gradients(plain, inputs, at::kDouble);
  const Tensors found = gradients(own, inputs, at::kDouble);
  const Tensors half = gradients(own, inputs, at::kBFloat16);
  REQUIRE(found.size() == expected.size());
  for (std::size_t at = 0; at < expected.size(); ++at) {
    INFO("tensor " << at << " of " << expected.size());
    CHECK(at::allclose(found[at], expected[at], /*rtol=*/1e-9, /*atol=*/1e-9));
    CHECK(((half[at] - expected[at]).norm() / expected[at].norm()).item<double>() < 0.02);
  }
}

at::Tensor numbers(at::IntArrayRef sizes, double start) {
  const at::Tensor flat = at::arange(at::empty(sizes, at::kMeta).numel(), at::kDouble);
  return (flat * 0.7 + start).sin().view(sizes).to(at::kBFloat16).to(at::kDouble);
}

at::Tensor plain_norm(const at::Tensor& x, const at::Tensor& weight) {
  return x / (x.square().mean(-1, /*keepdim=*/true) + 1e-5).sqrt() * weight;
}

TEST_CASE("A norm that saves only its input has the gradients of its formula", "[exec][models]") {
  const Tensors inputs{numbers({3, 5, 2, 7}, 0.1), numbers({7}, 0.4)};
  check_equal([](const Tensors& t) { return root_norm(t[0], t[1], 1e-5, false); },
              [](const Tensors& t) { return plain_norm(t[0], t[1]); }, inputs);
}

TEST_CASE("A norm does not compute gradients that are not needed", "[exec][models]") {
  const at::Tensor input = numbers({3, 7}, 0.1).requires_grad_(), weight = numbers({7}, 0.4);
  const at::Tensor output = root_norm(input, weight, 1e-5, true);
  CHECK(torch::autograd::grad({output.sum()}, {input}).at(0).sizes() == input.sizes());
  CHECK(at::allclose(output, plain_norm(input, weight + 1), 1e-5, 1e-5));
}

TEST_CASE("Gates with a recomputed activation have the right gradients", "[exec][models]") {
  const Tensors inputs{numbers({3, 11}, 0.2), numbers({3, 11}, 0.9)};
  using plan::Activation;
  check_equal([](const Tensors& t) { return activated(Activation::Usual, t[0], t[1]); },
              [](const Tensors& t) { return at::silu(t[1]) * t[0]; }, inputs);
  check_equal([](const Tensors& t) { return activated(Activation::Gelu, t[0], t[1]); },
              [](const Tensors& t) { return at::gelu(t[1]) * t[0]; }, inputs);
  check_equal([](const Tensors& t) { return activated(Activation::Tanh, t[0], t[1]); },
              [](const Tensors& t) { return at::gelu(t[1], "tanh") * t[0]; }, inputs);
}

/// Two rows of tokens, each visible from itself and the two after it.
std::optional<at::Tensor> band(const at::Tensor& like) {
  return at::ones({9, 9}, like.options().dtype(at::kBool)).tril().triu(-2);
}
std::optional<at::Tensor> none(const at::Tensor&) { return {}; }

at::Tensor written(const Tensors& t, const at::Tensor& seen, double scale) {
  const Tensors all = for_each_query(t);
  const at::Tensor scores = at::matmul(all[0], all[1].transpose(2, 3)) * scale;
  return at::matmul(at::softmax(scores.masked_fill(seen.logical_not(), -1e30), -1), all[2]);
}

TEST_CASE("Attention that saves shared keys once has the gradients of materialized scores",
          "[exec][models]") {
  // Six query heads on two key heads, with values narrower than keys.
  const Tensors inputs{numbers({2, 6, 9, 8}, 0.1), numbers({2, 2, 9, 8}, 0.5),
                       numbers({2, 2, 9, 5}, 0.7)};
  check_equal([](const Tensors& t) { return fused_attention(t, none, {}); },
              [](const Tensors& t) {
                return written(t, at::ones({9, 9}, at::kBool).tril(), 1 / std::sqrt(8.0));
              },
              inputs);
  check_equal([](const Tensors& t) { return fused_attention(t, band, 0.3); },
              [](const Tensors& t) { return written(t, *band(t[0]), 0.3); }, inputs);
}

}  // namespace saved_inputs_test
