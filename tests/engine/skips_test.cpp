#include "pipewright/engine/skips.hpp"

#include <torch/nn.h>

#include "exec/support/run_layers.hpp"
#include "pipewright/engine/module_layers.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace skips_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using test::run_layers;

LayerSpec times(int factor) {
  return function_layer("times", [factor](const at::Tensor& input) { return input * factor; });
}

at::Tensor add(const at::Tensor& value, const at::Tensor& skip) { return value + skip; }
at::Tensor subtract(const at::Tensor& value, const at::Tensor& skip) { return value - skip; }

std::string refusal(const std::vector<ModelItem>& items) {
  return test::error_of([&] { with_skips(items); });
}

TEST_CASE("A skip bypasses the layers between push and pop", "[exec]") {
  const auto layers = with_skips({times(2), PushSkip{"a"}, times(3), times(5), PopSkip{"a", add}});
  REQUIRE(layers.size() == 5);
  CHECK(layers[1].name == "push a");
  CHECK(layers[4].name == "pop a");
  const auto outputs = run_layers(layers, {at::tensor(1)});
  REQUIRE(outputs.size() == 1);
  CHECK(outputs[0].item<int>() == 2 * 3 * 5 + 2);
}

TEST_CASE("Skips may cross, and be popped in any order", "[exec]") {
  const auto layers = with_skips({PushSkip{"a"}, times(10), PushSkip{"b"}, times(10),
                                  PopSkip{"a", add}, times(10), PopSkip{"b", subtract}});
  CHECK(run_layers(layers, {at::tensor(1)})[0].item<int>() == (100 + 1) * 10 - 10);
}

TEST_CASE("A gradient flows through the skip", "[exec]") {
  const auto layers = with_skips({PushSkip{"a"}, times(3), PopSkip{"a", add}});
  const at::Tensor x = at::ones(2).requires_grad_();
  run_layers(layers, {x})[0].sum().backward();
  CHECK(x.grad().equal(at::full({2}, 4.0)));
}

TEST_CASE("A layer of several tensors sees all of them except the skip", "[exec]") {
  const auto swap = function_layer("swap", [](const Tensors& pair) {
    return Tensors{pair.at(1), pair.at(0)};
  });
  const auto outputs = run_layers(with_skips({PushSkip{"a"}, swap, PopSkip{"a", subtract}}),
                                  {at::tensor(1), at::tensor(7)});
  REQUIRE(outputs.size() == 2);
  CHECK(outputs[0].item<int>() == 7 - 1);
  CHECK(outputs[1].item<int>() == 1);
}

TEST_CASE("A relay acts on the first tensor and passes the others on", "[exec]") {
  const auto outputs =
      run_layers({relay(times(2)), relay(times(5))}, {at::tensor(1), at::ones(1, at::kBool)});
  REQUIRE(outputs.size() == 2);
  CHECK(outputs[0].item<int>() == 10);
  CHECK(outputs[1].scalar_type() == at::kBool);
}

TEST_CASE("A relay keeps the layer's parameters and properties", "[exec]") {
  LayerSpec head = module_layer("head", [] { return torch::nn::Linear(2, 2); });
  head.tied_key = "key";
  head.tied_weights = {"weight"};
  head.random = true;
  head.varies = true;
  const LayerSpec relayed = relay(head);
  CHECK(relayed.name == "head");
  CHECK(relayed.tied_key == "key");
  CHECK(relayed.random);
  CHECK(relayed.varies);
  CHECK(build_layer({relayed}, 0, 1)->named_parameters().keys() ==
        std::vector<std::string>{"weight", "bias"});
}

TEST_CASE("Pushes and pops that do not match are rejected", "[exec]") {
  CHECK(refusal({PushSkip{"a"}, times(2)}) == "pushed but never popped: skip \"a\"");
  CHECK(refusal({PushSkip{"a"}, PushSkip{"a"}}) ==
        "skip \"a\" is pushed again before it is popped");
  CHECK(refusal({PopSkip{"a", add}}) ==
        "skip \"a\" is popped, but it is not open there (open: none)");
  CHECK(refusal({PushSkip{"residual"}, PopSkip{"residul", add}}) ==
        "skip \"residul\" is popped, but it is not open there, did you mean \"residual\"? "
        "(open: residual)");
}

TEST_CASE("Splits between items set stage boundaries, and are not layers", "[exec]") {
  const std::vector<ModelItem> items{times(2),    PushSkip{"a"},     PipeSplit{}, times(3),
                                     PipeSplit{}, PopSkip{"a", add}, times(5)};
  CHECK(with_skips(items).size() == 5);
  CHECK(boundaries_at_marks(items) == std::vector<int>{0, 2, 3, 5});
  CHECK(boundaries_at_marks({times(2)}) == std::vector<int>{0, 1});
  const auto error = [](const std::vector<ModelItem>& marked) {
    return test::error_of([&] { boundaries_at_marks(marked); });
  };
  CHECK(error({PipeSplit{}, times(2)}) == "there is no layer before split 1: leave it out");
  CHECK(error({times(2), PipeSplit{}, PipeSplit{}, times(3)}) ==
        "there is no layer between the previous split and split 2: leave it out");
  CHECK(error({times(2), PipeSplit{}}) == "there is no layer after split 1: leave it out");
}

}  // namespace skips_test
