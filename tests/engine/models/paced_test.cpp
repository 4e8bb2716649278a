#include "pipewright/engine/models/paced.hpp"

#include <torch/csrc/autograd/function.h>

#include <chrono>
#include <cmath>

#include "pipewright/exec/training/layer.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace paced_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using plan::Seconds;

constexpr PacedTimes times{Seconds{2e-3}, Seconds{3e-3}, Seconds{5e-3}};

std::shared_ptr<Layer> build(const PacedTimes& pace) {
  return build_layer({paced_layer("paced", pace)}, 0, /*base_seed=*/0);
}

at::Tensor numbers() { return at::arange(6, at::kFloat).view({2, 3}); }
at::Tensor numbers_with_gradient() { return numbers().requires_grad_(); }

template <class Work>
double seconds_of(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Counts how often a node of the graph runs.
class Count final : public torch::autograd::FunctionPostHook {
 public:
  explicit Count(int& runs) : runs_(runs) {}
  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& outputs,
      const torch::autograd::variable_list& /*inputs*/) override {
    ++runs_;
    return outputs;
  }

 private:
  int& runs_;
};

/// Counts the slow nodes that run in a backward from `output`: the operands of the addition that
/// made it.
struct SlowNodes {
  explicit SlowNodes(const at::Tensor& output) {
    const auto& edges = output.grad_fn()->next_edges();
    if (edges.at(0).is_valid())
      edges[0].function->add_post_hook(std::make_unique<Count>(input_runs));
    edges.at(1).function->add_post_hook(std::make_unique<Count>(weight_runs));
  }
  int input_runs = 0;
  int weight_runs = 0;
};

TEST_CASE("A paced layer takes its times and leaves numbers unchanged", "[exec]") {
  const auto layer = build(times);
  const at::Tensor input = numbers_with_gradient();
  at::Tensor output;
  CHECK(seconds_of([&] { output = layer->forward(input, {}); }) >= times.forward.value);
  CHECK(at::equal(output, input));

  CHECK(seconds_of([&] { output.sum().backward(); }) >=
        times.input_gradient.value + times.weight_gradient.value);
  CHECK(at::equal(input.grad(), at::ones({2, 3})));
  CHECK(at::equal(layer->parameters().front().grad(), at::full({1}, 6.0F)));
}

TEST_CASE("A paced layer's parameter is added to its input", "[exec]") {
  const auto layer = build({});
  {
    const at::NoGradGuard no_grad;
    layer->parameters().front().fill_(0.5);
  }
  CHECK(at::equal(layer->forward(numbers(), {}), numbers() + 0.5));
}

TEST_CASE("A paced layer's two gradients can be computed separately, each in its own time",
          "[exec]") {
  const auto layer = build(times);
  const at::Tensor weight = layer->parameters().front(), input = numbers_with_gradient();
  const at::Tensor output = layer->forward(input, {});
  const at::Tensor ones = at::ones({2, 3});
  SlowNodes nodes(output);

  const auto gradient_of = [&](const at::Tensor& what) {
    return torch::autograd::grad({output}, {what}, {ones}, /*retain_graph=*/true).front();
  };
  CHECK(seconds_of([&] { CHECK(at::equal(gradient_of(input), ones)); }) >=
        times.input_gradient.value);
  CHECK(nodes.input_runs == 1);
  CHECK(nodes.weight_runs == 0);

  CHECK(seconds_of([&] { CHECK(at::equal(gradient_of(weight), at::full({1}, 6.0F))); }) >=
        times.weight_gradient.value);
  CHECK(nodes.input_runs == 1);
  CHECK(nodes.weight_runs == 1);
}

TEST_CASE("A paced layer whose input needs no gradient computes only the weight's", "[exec]") {
  const auto layer = build(times);
  const at::Tensor output = layer->forward(numbers(), {});
  SlowNodes nodes(output);
  output.sum().backward();
  CHECK(nodes.input_runs == 0);
  CHECK(nodes.weight_runs == 1);
}

TEST_CASE("A pace must be a time that can be waited for", "[exec]") {
  CHECK(test::error_of([] { paced_layer("x", {.forward = Seconds{-1}}); }) ==
        "layer x: paced at -1 s; possible are 0 to 3600 s");
  CHECK(test::error_of([] { paced_layer("x", {.weight_gradient = Seconds{std::nan("")}}); }) ==
        "layer x: paced at nan s; possible are 0 to 3600 s");
}

}  // namespace paced_test
