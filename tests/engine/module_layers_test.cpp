#include "pipewright/engine/module_layers.hpp"

#include <torch/nn.h>

#include "exec/support/run_layers.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace module_layers_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
namespace nn = torch::nn;

at::Tensor run(const LayerSpec& spec, const at::Tensor& input) {
  return test::run_layers({spec}, {input}).front();
}

std::vector<std::string> parameter_names(const LayerSpec& spec) {
  return build_layer({spec}, 0, 1)->named_parameters().keys();
}

TEST_CASE("A function of a tensor or of tensors is a layer", "[exec]") {
  const at::Tensor x = at::arange(3, at::kFloat);
  CHECK(run(function_layer("double", [](const at::Tensor& input) { return input * 2; }), x)
            .equal(x * 2));
  const auto swap = function_layer("swap", [](const Tensors& pair) {
    return Tensors{pair[1], pair[0]};
  });
  CHECK(test::run_layers({swap}, {x, x + 1})[0].equal(x + 1));
  const auto add = function_layer("add", [](const Tensors& pair) { return pair[0] + pair[1]; });
  CHECK(test::run_layers({add}, {x, x + 1})[0].equal(x + x + 1));
}

TEST_CASE("A layer of one tensor rejects several", "[exec]") {
  const auto layer = function_layer("relu", [](const at::Tensor& input) { return input.relu(); });
  CHECK(test::error_of([&] {
          test::run_layers({layer}, {at::ones(1), at::ones(1)});
        }) == "this layer takes one tensor, but got 2");
}

TEST_CASE("A module is a layer with the module's own names, built each time", "[exec]") {
  const auto spec = module_layer("head", [] { return nn::Linear(4, 2); });
  CHECK(parameter_names(spec) == std::vector<std::string>{"weight", "bias"});
  const auto a = build_layer({spec}, 0, 1), b = build_layer({spec}, 0, 1);
  CHECK(a->parameters()[0].equal(b->parameters()[0]));
  CHECK_FALSE(a->parameters()[0].is_same(b->parameters()[0]));
  const at::Tensor x = at::ones({3, 4});
  CHECK(a->forward_all({x}, {})[0].equal(
      at::linear(x, a->named_parameters()["weight"], a->named_parameters()["bias"])));
}

TEST_CASE("A module can have a custom call", "[exec]") {
  const auto both = module_layer(
      "both", [] { return std::make_shared<nn::LinearImpl>(2, 2); },
      [](auto& linear, const Tensors& inputs) {
        return Tensors{linear->forward(inputs[0]), linear->forward(inputs[1])};
      });
  const auto outputs = test::run_layers({both}, {at::ones({1, 2}), at::ones({1, 2})});
  REQUIRE(outputs.size() == 2);
  CHECK(outputs[0].equal(outputs[1]));
}

TEST_CASE("Training and evaluation mode reach the wrapped module and its children", "[exec]") {
  const auto spec = copied_layer("block", nn::Sequential(nn::Linear(4, 4), nn::Dropout(0.5)));
  const auto layer = build_layer({spec}, 0, 1);
  layer->eval();
  const at::Tensor x = at::ones({8, 4});
  CHECK(layer->forward_all({x}, {})[0].equal(layer->forward_all({x}, {})[0]));
  layer->train();
  CHECK_FALSE(layer->forward_all({x}, {})[0].equal(layer->forward_all({x}, {})[0]));

  const auto dropout = module_layer("dropout", [] { return nn::Dropout(0.5); });
  const auto alone = build_layer({dropout}, 0, 1);
  alone->eval();
  CHECK(alone->forward_all({x}, {})[0].equal(x));
}

TEST_CASE("An existing module is copied with its weights and frozen parameters", "[exec]") {
  nn::Linear linear(3, 2);
  linear->bias.set_requires_grad(false);
  const auto spec = copied_layer("linear", linear);
  const auto a = build_layer({spec}, 0, /*base_seed=*/1), b = build_layer({spec}, 0, 2);
  for (const auto& copy : {a, b}) {
    const auto parameters = copy->named_parameters();
    CHECK(parameters["weight"].equal(linear->weight));
    CHECK_FALSE(parameters["weight"].is_same(linear->weight));
    CHECK(parameters["weight"].requires_grad());
    CHECK_FALSE(parameters["bias"].requires_grad());
  }
  const at::Tensor x = at::ones({1, 3});
  CHECK(a->forward_all({x}, {})[0].equal(linear->forward(x)));
}

struct Uncloneable : nn::Module {
  at::Tensor forward(const at::Tensor& input) { return input; }
};

TEST_CASE("A module that cannot be copied is rejected with an error message", "[exec]") {
  const auto spec = copied_layer("odd", std::make_shared<Uncloneable>());
  CHECK(test::error_of([&] { build_layer({spec}, 0, 1); })
            .starts_with("layer odd: its module cannot be copied; derive it from "
                         "torch::nn::Cloneable, or give a function that builds it"));
}

TEST_CASE("A list of modules is a list of layers", "[exec]") {
  nn::Sequential list({{"first", nn::AnyModule(nn::Linear(4, 4))},
                       {"drop", nn::AnyModule(nn::Dropout(0.5))},
                       {"last", nn::AnyModule(nn::Linear(4, 2))}});
  const auto layers = layers_of(list);
  REQUIRE(layers.size() == 3);
  CHECK(layers[0].name == "first");
  CHECK(layers[2].name == "last");
  CHECK_FALSE(layers[0].random);
  CHECK(layers[1].random);
  const at::Tensor x = at::ones({2, 4});
  list->eval();
  at::Tensor value = x;
  for (const auto& layer : test::build_all(layers)) {
    layer->eval();
    value = layer->forward_all({value}, {}).front();
  }
  CHECK(value.equal(list->forward(x)));
}

/// LibTorch accepts a nested Sequential only as a class that declares its forward's input.
struct BlocksImpl : nn::SequentialImpl {
  using nn::SequentialImpl::SequentialImpl;
  at::Tensor forward(const at::Tensor& x) { return nn::SequentialImpl::forward(x); }
};
TORCH_MODULE(Blocks);

TEST_CASE("Nested lists become layers with nested names, or one layer", "[exec]") {
  Blocks inner, blocks;
  inner->push_back(nn::Tanh());
  inner->push_back(nn::Linear(4, 4));
  blocks->push_back(nn::Linear(4, 4));
  blocks->push_back(inner);
  nn::Sequential list;
  list->push_back("encoder", blocks);
  list->push_back("head", nn::Linear(4, 2));
  const auto names = [](const std::vector<LayerSpec>& layers) {
    std::vector<std::string> all;
    for (const LayerSpec& layer : layers)
      all.push_back(layer.name);
    return all;
  };
  using Names = std::vector<std::string>;
  CHECK(names(layers_of(list)) == Names{"encoder", "head"});
  const auto layers = nested_layers_of(list);
  CHECK(names(layers) == Names{"encoder.0", "encoder.1.0", "encoder.1.1", "head"});
  CHECK(layers[1].type == "torch::nn::TanhImpl");
  at::Tensor value = at::ones({2, 4});
  for (const auto& layer : test::build_all(layers))
    value = layer->forward_all({value}, {}).front();
  CHECK(value.equal(list->forward(at::ones({2, 4}))));
}

TEST_CASE("A layer knows the class of its module", "[exec]") {
  CHECK(module_layer("a", [] { return nn::Linear(4, 4); }).type == "torch::nn::LinearImpl");
  CHECK(module_layer("a", [] { return std::make_shared<nn::TanhImpl>(); }).type ==
        "torch::nn::TanhImpl");
  CHECK(copied_layer("a", nn::Linear(4, 4)).type == "torch::nn::LinearImpl");
  CHECK(function_layer("a", [](const at::Tensor& x) { return x; }).type.empty());
}

TEST_CASE("A tied layer starts with the weight of the first one, and has its own forward",
          "[exec]") {
  const auto build = [] { return nn::Embedding(5, 3); };
  const std::vector<LayerSpec> layers{
      TiedLayerSpec{"tokens", "weight", module_layer("embedding", build)},
      TiedLayerSpec{
          "tokens", "weight",
          module_layer("head", build, [](nn::Embedding& embedding, const at::Tensor& input) {
            return at::matmul(input, embedding->weight.t());
          })}};
  CHECK(layers[1].tied_key == "tokens");
  const auto built = test::build_all(layers);
  const at::Tensor weight = built[0]->parameters()[0];
  CHECK(built[1]->parameters()[0].equal(weight));
  const at::Tensor tokens = at::tensor({1, 4}, at::kLong);
  const auto hidden = built[0]->forward_all({tokens}, {});
  CHECK(built[1]->forward_all(hidden, {})[0].equal(at::matmul(weight.index({tokens}), weight.t())));
}

}  // namespace module_layers_test
