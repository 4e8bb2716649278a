// Layers that share several weights.

#include <torch/nn.h>

#include "exec/support/engine_equals_serial.hpp"
#include "pipewright/engine/gradient_contract.hpp"
#include "pipewright/engine/module_layers.hpp"
#include "pipewright/exec/training/layer.hpp"

namespace tied_weights_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using test::error_of;
namespace nn = torch::nn;

/// A module with the same two tensors under other names.
struct Turned : nn::Module {
  Turned() {
    matrix = register_parameter("matrix", at::zeros({4, 4}));
    offset = register_parameter("offset", at::zeros({4}));
    own = register_parameter("own", at::full({4}, 0.5f));
  }
  at::Tensor forward(const at::Tensor& x) { return at::matmul(x - offset, matrix) * own; }
  at::Tensor matrix, offset, own;
};

PipelineModule model(int pipe, int data, const std::string& frozen = "") {
  const LayerSpec first = TiedLayerSpec{"both",
                                        {"weight", "bias"},
                                        module_layer("a", [] { return nn::Linear(4, 4); })},
                  last = TiedLayerSpec{"both", {"matrix", "offset"}, module_layer("c", [] {
                                         return std::make_shared<Turned>();
                                       })};
  const auto half = [](const at::Tensor& x) { return x.tanh().narrow(1, 0, 2); };
  return {
      {first, function_layer("t", [](const at::Tensor& x) { return x.tanh(); }), last,
       function_layer("half", half)},
      {.topology = plan::pipe_data_topology(pipe, data),
       .partition = std::string("uniform"),
       .loss = [](const Tensors& outputs,
                  const Tensors& targets) { return at::mse_loss(outputs.at(0), targets.at(0)); },
       .frozen = frozen}};
}

TEST_CASE("Layers share several weights on any stages", "[exec]") {
  for (const auto& [pipe, data] : std::vector<std::pair<int, int>>{{1, 1}, {2, 1}, {4, 1}, {2, 2}})
    for (const double clip : {0.0, 0.01}) {
      CAPTURE(pipe, data, clip);
      EngineOptions options = test::four_microbatches({.clip_norm = clip});
      test::check_engine_equals_serial(model(pipe, data), options);
      const test::SyntheticData made_up;
      PipelineEngine engine(model(pipe, data), options);
      engine.set_data(batches_of(made_up, 4));
      engine.train_batch();
      const auto parameters = engine.executor().parameters();  // weight, bias, matrix, offset, own
      CHECK(test::same_bits(parameters.at(0), parameters.at(2)));
      CHECK(test::same_bits(parameters.at(1), parameters.at(3)));
      CHECK(gradient_contract(model(pipe, data), options, batches_of(made_up, 4)).holds());
    }
}

/// On three ranks, the middle one has both layers of one key; those of the other key are on the
/// other ranks.
PipelineModule two_keys(int pipe, int data) {
  const auto linear = [](const std::string& key, const std::string& name) -> LayerSpec {
    return TiedLayerSpec{key, "weight", module_layer(name, [] { return nn::Linear(4, 4); })};
  };
  const auto half = [](const at::Tensor& x) { return x.tanh().narrow(1, 0, 2); };
  return {
      {linear("across", "first"), function_layer("t", [](const at::Tensor& x) { return x.tanh(); }),
       linear("within", "middle"), linear("within", "again"), linear("across", "last"),
       function_layer("half", half)},
      {.topology = plan::pipe_data_topology(pipe, data),
       .partition = std::string("uniform"),
       .loss = [](const Tensors& outputs, const Tensors& targets) {
         return at::mse_loss(outputs.at(0), targets.at(0));
       }}};
}

TEST_CASE("Weights shared within a stage and weights shared by stages can coexist", "[exec]") {
  for (const auto& [pipe, data] :
       std::vector<std::pair<int, int>>{{1, 1}, {2, 1}, {3, 1}, {2, 2}, {3, 2}}) {
    CAPTURE(pipe, data);
    const EngineOptions options = test::four_microbatches({.clip_norm = 0.01});
    test::check_engine_equals_serial(two_keys(pipe, data), options);
    const test::SyntheticData made_up;
    CHECK(gradient_contract(two_keys(pipe, data), options, batches_of(made_up, 4)).holds());
  }
}

TEST_CASE("One of several shared weights may be frozen in all layers", "[exec]") {
  test::check_engine_equals_serial(model(2, 1, "bias|offset"), test::four_microbatches());
}

TEST_CASE("Layers that name different numbers of shared weights are rejected", "[exec]") {
  const auto linear = [](const std::string& name, const WeightNames& weights) -> LayerSpec {
    return TiedLayerSpec{"key", weights, module_layer(name, [] { return nn::Linear(4, 4); })};
  };
  const std::vector<LayerSpec> layers{linear("a", {"weight", "bias"}), linear("b", "weight")};
  CHECK(error_of([&] { build_layer(layers, 1, 0); }) ==
        "layers a and b are tied by key 'key', but one shares 2 weights, the other 1");
}

}  // namespace tied_weights_test
