#include "pipewright/engine/models/alexnet.hpp"

#include <torch/csrc/autograd/function.h>
#include <torch/types.h>

#include <set>

#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/model/alexnet_model.hpp"
#include "support/catch.hpp"

namespace alexnet_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;

constexpr int base_seed = 1;
constexpr int first_dropout = 15;
constexpr int second_dropout = 18;

std::int64_t parameters_of(const Layer& layer) {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : layer.parameters())
    count += parameter.numel();
  return count;
}

std::shared_ptr<Layer> dropout(int index, int seed = 7) {
  return build_layer(alexnet_layers({}, seed), index, base_seed);
}

TEST_CASE("AlexNet has the 22 layers and the number of parameters given in tutorials",
          "[exec][alexnet]") {
  const auto specs = alexnet_layers({}, /*seed=*/0);
  std::vector<std::int64_t> counts;
  counts.reserve(specs.size());
  for (int i = 0; i < static_cast<int>(specs.size()); ++i)
    counts.push_back(parameters_of(*build_layer(specs, i, base_seed)));

  CHECK(counts == std::vector<std::int64_t>{23296,  0,        0,          // conv, relu, pool
                                            307392, 0,        0,          // conv, relu, pool
                                            663936, 0,        884992, 0,  // two of conv, relu
                                            590080, 0,        0,          // conv, relu, pool
                                            0,      0,                    // average pool, flatten
                                            0,      37752832, 0,          // dropout, linear, relu
                                            0,      16781312, 0,          // dropout, linear, relu
                                            40970});                      // linear
}

TEST_CASE("AlexNet has as many outputs as classes", "[exec][alexnet]") {
  const auto specs = alexnet_layers({.classes = 3}, /*seed=*/0);
  const auto last = build_layer(specs, 21, base_seed);
  CHECK(last->forward(at::ones({2, 4096}), {}).sizes() == at::IntArrayRef{2, 3});
}

TEST_CASE("AlexNet's relu does not modify its input", "[exec][alexnet]") {
  const auto relu = build_layer(alexnet_layers({}, /*seed=*/0), 1, base_seed);
  const at::Tensor input = torch::tensor({-1.0F, 2.0F});
  CHECK(at::equal(relu->forward(input, {}), torch::tensor({0.0F, 2.0F})));
  CHECK(at::equal(input, torch::tensor({-1.0F, 2.0F})));
}

constexpr int average_pool = 13;

/// Checks the last pooling, which reduces any remaining image to 6 x 6.
void check_average_pool(const std::vector<std::int64_t>& sizes, at::ScalarType type,
                        double tolerance) {
  const auto layer = build_layer(alexnet_layers({}, /*seed=*/0), average_pool, base_seed);
  const at::Tensor input = at::arange(2 * 3 * sizes[0] * sizes[1], at::kFloat)
                               .mul_(0.37)
                               .sin_()
                               .view({2, 3, sizes[0], sizes[1]})
                               .to(type);
  const at::Tensor own = input.clone().requires_grad_(), theirs = input.clone().requires_grad_();
  const at::Tensor pooled = layer->forward(own, {});
  const at::Tensor expected = at::adaptive_avg_pool2d(theirs, {6, 6});
  CHECK(pooled.sizes() == expected.sizes());
  CHECK(pooled.scalar_type() == type);
  CHECK(at::allclose(pooled, expected, tolerance, tolerance));
  const at::Tensor gradient = at::arange(expected.numel(), at::kFloat).cos_().view_as(expected);
  pooled.backward(gradient.to(type));
  expected.backward(gradient.to(type));
  CHECK(at::allclose(own.grad(), theirs.grad(), tolerance, tolerance));
}

TEST_CASE("AlexNet's average pooling has LibTorch's values and gradients", "[exec][alexnet]") {
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{6, 6}, {12, 18}, {13, 13}, {7, 20}, {1, 1}, {3, 6}, {6, 11}}) {
    check_average_pool(sizes, at::kFloat, 1e-6);
    check_average_pool(sizes, at::kBFloat16, 0.02);
  }
}

/// Returns the operators in the backward of a tensor.
std::set<std::string> backward_of(const at::Tensor& tensor) {
  std::set<torch::autograd::Node*> seen;
  std::vector<torch::autograd::Node*> open{tensor.grad_fn().get()};
  std::set<std::string> names;
  while (!open.empty()) {
    torch::autograd::Node* const node = open.back();
    open.pop_back();
    if (node == nullptr || !seen.insert(node).second)
      continue;
    names.insert(node->name());
    for (const auto& edge : node->next_edges())
      open.push_back(edge.function.get());
  }
  return names;
}

/// On GPUs, LibTorch has a deterministic kernel for each of these, but none for
/// AdaptiveAvgPool2DBackward0.
TEST_CASE("The backward of AlexNet's convolutions and pools uses only deterministic operators",
          "[exec][alexnet]") {
  const auto specs = alexnet_layers({.image_size = 127}, /*seed=*/0);
  std::vector<std::shared_ptr<Layer>> layers;  // keep the leaves of the graph alive
  at::Tensor value = at::ones({1, 3, 127, 127}).requires_grad_();
  for (int layer = 0; layer <= average_pool; ++layer)
    value = layers.emplace_back(build_layer(specs, layer, base_seed))->forward(value, {});
  CHECK(backward_of(value) ==
        std::set<std::string>{"BmmBackward0", "ConvolutionBackward0", "ExpandBackward0",
                              "MaxPool2DWithIndicesBackward0", "MmBackward0", "ReluBackward0",
                              "UnsafeViewBackward0", "ViewBackward0",
                              "torch::autograd::AccumulateGrad"});
}

TEST_CASE("Dropout zeroes about half of its input and doubles the rest", "[exec][alexnet]") {
  const at::Tensor output = dropout(first_dropout)->forward(at::ones({100, 100}), {});
  const auto dropped = (output == 0).sum().item<int>();
  const auto doubled = (output == 2).sum().item<int>();
  CHECK(dropped + doubled == 10'000);
  CHECK(dropped == Approx(5'000).margin(250));  // five standard deviations
}

TEST_CASE("Dropout is the same for a step and microbatch, independent of earlier calls",
          "[exec][alexnet]") {
  const at::Tensor input = at::ones({4, 256});
  const auto layer = dropout(first_dropout);
  const at::Tensor output = layer->forward(input, {.step = 3, .microbatch = 1});
  layer->forward(input, {.step = 3, .microbatch = 0});
  at::manual_seed(99);

  CHECK(at::equal(layer->forward(input, {.step = 3, .microbatch = 1}), output));
  CHECK(at::equal(dropout(first_dropout)->forward(input, {.step = 3, .microbatch = 1}), output));
}

TEST_CASE("Dropout differs between steps, microbatches, layers and seeds", "[exec][alexnet]") {
  const at::Tensor input = at::ones({4, 256});
  const auto layer = dropout(first_dropout);
  const at::Tensor output = layer->forward(input, {.step = 3, .microbatch = 1});

  CHECK_FALSE(at::equal(layer->forward(input, {.step = 4, .microbatch = 1}), output));
  CHECK_FALSE(at::equal(layer->forward(input, {.step = 3, .microbatch = 2}), output));
  CHECK_FALSE(at::equal(layer->forward(input, {.step = 1, .microbatch = 3}), output));
  CHECK_FALSE(
      at::equal(dropout(second_dropout)->forward(input, {.step = 3, .microbatch = 1}), output));
  CHECK_FALSE(at::equal(
      dropout(first_dropout, /*seed=*/8)->forward(input, {.step = 3, .microbatch = 1}), output));
}

TEST_CASE("Dropout does not affect the process's random numbers", "[exec][alexnet]") {
  const auto layer = dropout(first_dropout);
  const at::Generator& generator = at::detail::getDefaultCPUGenerator();
  const at::Tensor before = generator.get_state();
  layer->forward(at::ones({4, 256}), {});
  CHECK(at::equal(generator.get_state(), before));
}

TEST_CASE("Dropout passes no gradient to dropped elements", "[exec][alexnet]") {
  const at::Tensor input = at::ones({4, 256}).requires_grad_();
  const at::Tensor output = dropout(first_dropout)->forward(input, {});
  output.sum().backward();
  CHECK(at::equal(input.grad(), output.detach()));  // for ones, both are the scaled mask
}

TEST_CASE("Dropout passes its input on outside training", "[exec][alexnet]") {
  const auto layer = dropout(first_dropout);
  layer->eval();
  const at::Tensor input = at::ones({4, 256});
  CHECK(at::equal(layer->forward(input, {}), input));
}

}  // namespace alexnet_test
