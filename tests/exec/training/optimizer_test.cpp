#include "pipewright/exec/training/optimizer.hpp"

#include <torch/types.h>

#include <cmath>

#include "support/catch.hpp"

namespace optimizer_test {

using namespace pipewright;
using exec::Optimizer;
using exec::OptimizerOptions;
using exec::Tensors;

TEST_CASE("AdamW: two steps of one number follow the formula", "[exec]") {
  const double rate = 0.1, decay = 0.01, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  const at::Tensor weight = torch::tensor({2.0}, torch::requires_grad());
  Optimizer optimizer({weight},
                      {.weight_decay = decay, .beta1 = beta1, .beta2 = beta2, .epsilon = epsilon});

  double w = 2.0, m = 0, v = 0;
  const double gradients[] = {0.5, -1.5};
  for (int step = 1; step <= 2; ++step) {
    const double g = gradients[step - 1];
    (weight * g).sum().backward();
    optimizer.step(rate);

    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    w -= rate * decay * w;
    w -= rate * (m / (1 - std::pow(beta1, step))) /
         (std::sqrt(v / (1 - std::pow(beta2, step))) + epsilon);
    CHECK(weight.item<float>() == Approx(w));
  }
  CHECK(weight.grad().item<float>() == 0);
}

TEST_CASE("AdamW: gradients of several backwards accumulate in memory that exists from the start",
          "[exec]") {
  const at::Tensor weight = torch::ones({3}, torch::requires_grad());
  Optimizer optimizer({weight}, {});
  const void* const memory = weight.grad().const_data_ptr();
  weight.sum().backward();
  weight.sum().backward();
  CHECK(weight.grad().const_data_ptr() == memory);
  CHECK(at::equal(weight.grad(), torch::full({3}, 2.0)));
}

TEST_CASE("AdamW: an empty list of parameters works", "[exec]") {
  Optimizer optimizer({}, {});
  CHECK_NOTHROW(optimizer.step(0.1));
}

TEST_CASE("SGD: with and without momentum, two steps follow the formula", "[exec]") {
  const double rate = 0.1, decay = 0.01, momentum = 0.9;
  for (const auto kind : {plan::Optimizer::Sgd, plan::Optimizer::SgdMomentum}) {
    const at::Tensor weight = torch::tensor({2.0}, torch::requires_grad());
    Optimizer optimizer({weight}, {.kind = kind, .weight_decay = decay, .momentum = momentum});
    double w = 2.0, v = 0;
    for (const double g : {0.5, -1.5}) {
      (weight * g).sum().backward();
      optimizer.step(rate);
      v = (kind == plan::Optimizer::SgdMomentum ? momentum * v : 0) + g + decay * w;
      w -= rate * v;
      CHECK(weight.item<float>() == Approx(w));
    }
  }
}

/// Returns three parameters of 2, 5 and 4 elements, with the same values each time.
Tensors parameters() {
  Tensors all;
  for (const std::int64_t size : {2, 5, 4})
    all.push_back((at::arange(size, at::kFloat) * 0.37 - 1).requires_grad_());
  return all;
}

void add_gradients(const Tensors& weights) {
  for (const at::Tensor& weight : weights)
    (weight * weight * 0.3).sum().backward();
}

TEST_CASE("Each parameter has its own decay and learning rate factor", "[exec]") {
  for (const auto kind : {plan::Optimizer::AdamW, plan::Optimizer::Sgd}) {
    const std::vector<exec::ParameterRule> rules{{0.5, 1}, {0, 1}, {0, 0.25}, {0.5, 1}};
    Tensors weights;
    for (std::size_t p = 0; p < rules.size(); ++p)
      weights.push_back(torch::full({2}, 2.0).requires_grad_());
    Optimizer optimizer(weights, {.kind = kind, .weight_decay = 9}, {},
                        exec::Places::PositionsFixed, {}, rules);
    for (const at::Tensor& weight : weights)
      weight.sum().backward();
    optimizer.step(0.1);
    // The first step of AdamW moves by the full rate.
    CHECK(weights[1][0].item<float>() == Approx(2 - 0.1));
    CHECK(weights[2][0].item<float>() == Approx(2 - 0.1 / 4));
    CHECK(weights[0][0].item<float>() == Approx(2 - 0.1 - 0.1 * 0.5 * 2));
    CHECK(at::equal(weights[0], weights[3]));
  }
}

TEST_CASE("Norms and biases are not matrices", "[exec]") {
  CHECK(exec::is_matrix({"layer0", "attention.query.weight", {8, 8}}));
  CHECK_FALSE(exec::is_matrix({"layer0", "norm1.weight", {8}}));
  CHECK_FALSE(exec::is_matrix({"layer0", "feed_forward.experts.up.bias", {4, 8}}));
}

TEST_CASE("Shards together give the bits of one optimizer", "[exec]") {
  for (const auto kind : {plan::Optimizer::AdamW, plan::Optimizer::SgdMomentum})
    for (const int count : {2, 3, 5}) {
      const Tensors expected = parameters();
      const std::vector<exec::ParameterRule> rules{{0.1, 1}, {0, 1}, {0.1, 0.5}};
      Optimizer whole(expected, {.kind = kind}, {}, exec::Places::PositionsFixed, {}, rules);
      std::vector<Tensors> copies;
      std::vector<Optimizer> shards;
      for (int k = 0; k < count; ++k) {
        copies.push_back(parameters());
        shards.emplace_back(copies.back(), OptimizerOptions{.kind = kind}, exec::Shard{k, count},
                            exec::Places::PositionsFixed, std::vector<bool>(), rules);
      }
      for (int step = 0; step < 3; ++step) {
        add_gradients(expected);
        whole.step(0.1);
        for (std::size_t k = 0; k < shards.size(); ++k) {
          add_gradients(copies[k]);
          shards[k].step(0.1);
        }
        // Each shard's part goes to every replica.
        const at::NoGradGuard no_grad;
        for (int k = 0; k < count; ++k) {
          const Tensors updated = shards[static_cast<std::size_t>(k)].own_slices();
          for (Optimizer& other : shards) {
            const Tensors places = other.slices(k);
            for (std::size_t s = 0; s < places.size(); ++s)
              places[s].copy_(updated[s]);
          }
        }
      }
      std::int64_t numbers = 0;
      for (const Optimizer& shard : shards)
        for (const Optimizer::State& state : shard.states())
          numbers += state.name == "step" ? 0 : state.value.numel();
      CHECK(numbers == 11 * plan::states_of(kind));
      for (const Tensors& copy : copies)
        for (std::size_t p = 0; p < expected.size(); ++p)
          CHECK(at::equal(copy[p], expected[p]));
    }
}

TEST_CASE("16-bit parameters follow a master copy, so small updates are not lost", "[exec]") {
  const at::Tensor weight = torch::ones({1}, at::kBFloat16).requires_grad_();
  Optimizer optimizer({weight}, {.kind = plan::Optimizer::Sgd, .weight_decay = 0});
  for (int step = 0; step < 16; ++step) {
    weight.sum().backward();
    optimizer.step(1.0 / 1024);  // far below bfloat16's 2^-8 at 1
  }
  CHECK(weight.item<float>() == 1 - 16.0F / 1024);
}

TEST_CASE("The learning rate rises, then falls to its minimum", "[exec]") {
  const auto rates = [](plan::Decay decay) {
    std::vector<double> seen;
    for (int step = 0; step < 8; ++step)
      seen.push_back(exec::learning_rate_at({.learning_rate = 8,
                                             .warm_up_steps = 2,
                                             .decay = decay,
                                             .decay_steps = 4,
                                             .lowest_learning_rate = 4},
                                            step));
    return seen;
  };
  CHECK(rates(plan::Decay::None) == std::vector<double>{4, 8, 8, 8, 8, 8, 8, 8});
  CHECK(rates(plan::Decay::Linear) == std::vector<double>{4, 8, 8, 7, 6, 5, 4, 4});
  CHECK(rates(plan::Decay::Cosine)[4] == Approx(6));
  CHECK(rates(plan::Decay::Cosine)[6] == Approx(4));
}

/// Returns a parameter after some steps: updated as a whole, or in parts that are cut at odd
/// places.
at::Tensor stepped(plan::Optimizer kind, exec::Places places,
                   const std::vector<std::int64_t>& cuts) {
  const at::Tensor start = (torch::arange(331) * 0.37).sin(),
                   pull = (torch::arange(331) * 0.11).cos();
  std::vector<at::Tensor> parameters;
  for (const at::Tensor& part : start.split_with_sizes(cuts))
    parameters.push_back(part.clone().requires_grad_());
  Optimizer optimizer(parameters, {.kind = kind}, {}, places);
  for (int step = 0; step < 4; ++step) {
    const auto gradients = (pull * (step + 0.3)).split_with_sizes(cuts);
    for (std::size_t p = 0; p < parameters.size(); ++p)
      parameters[p].mutable_grad().copy_(gradients[p]);
    optimizer.step(0.05);
  }
  return at::cat(Tensors(parameters.begin(), parameters.end())).detach();
}

TEST_CASE("If positions may differ, a number's bits do not depend on where its tensor was cut",
          "[exec]") {
  for (const auto kind :
       {plan::Optimizer::AdamW, plan::Optimizer::Sgd, plan::Optimizer::SgdMomentum}) {
    const at::Tensor whole = stepped(kind, exec::Places::MayDiffer, {331});
    for (const auto& cuts : {std::vector<std::int64_t>{100, 231}, {7, 64, 60, 200}, {128, 192, 11}})
      CHECK(at::equal(stepped(kind, exec::Places::MayDiffer, cuts), whole));
    CHECK(at::allclose(stepped(kind, exec::Places::PositionsFixed, {331}), whole));
  }
}

}  // namespace optimizer_test
