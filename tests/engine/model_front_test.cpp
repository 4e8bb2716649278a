// Models of all kinds, each trained and evaluated as a pipeline and serially, with bit-identical
// results.

#include <fmt/format.h>
#include <torch/nn.h>

#include <cstring>

#include "exec/support/synthetic_data.hpp"
#include "pipewright/engine/engine.hpp"
#include "pipewright/engine/module_layers.hpp"
#include "pipewright/engine/skips.hpp"
#include "pipewright/exec/rank/serial.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace model_front_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using test::SyntheticData;
namespace nn = torch::nn;

constexpr int microbatches = 4;

at::Tensor squared_error(const Tensors& outputs, const Tensors& targets) {
  return at::mse_loss(outputs.front(), targets.front());
}

LayerSpec linear(const std::string& name, int in, int out) {
  return module_layer(name, [in, out] { return nn::Linear(in, out); });
}
LayerSpec tanh(const std::string& name) {
  return function_layer(name, [](const at::Tensor& input) { return input.tanh(); });
}

struct Model {
  std::vector<LayerSpec> layers;
  Tensors extra_inputs{};  // after the [3, 4] float32 input of each microbatch
  Loss loss = squared_error;
  bool dynamic_shapes = false;
  int checkpoint_interval = 0;
};

bool same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const at::Tensor& x, const at::Tensor& y) {
                      return x.sizes() == y.sizes() &&
                             std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
                    });
}

PipelineEngine engine_for(const Model& model, const std::string& schedule, int ranks) {
  return {PipelineModule(model.layers, {.topology = plan::pipe_data_topology(ranks, 1),
                                        .partition = std::string("uniform"),
                                        .loss = model.loss,
                                        .base_seed = 5,
                                        .checkpoint_interval = model.checkpoint_interval}),
          {.train_batch_size = microbatches,
           .schedule = schedule,
           .execution = {.dynamic_shapes = model.dynamic_shapes}}};
}

/// Trains, evaluates and continues training.
void check_equals_serial(const Model& model, const std::string& schedule, int ranks) {
  INFO(fmt::format("{} on {} ranks", schedule, ranks));
  const SyntheticData data(model.extra_inputs, model.dynamic_shapes);
  PipelineEngine engine = engine_for(model, schedule, ranks);
  engine.set_data(batches_of(data, microbatches));
  auto setup = engine.setup();
  setup.data = &data;
  SerialTrainer serial(setup, microbatches);

  for (int step = 0; step < 3; ++step)
    CHECK(engine.train_batch()->loss == serial.step(step).loss);
  BatchSource other = batches_of(data, microbatches);
  CHECK(engine.eval_batch(other)->loss == serial.evaluate(data, microbatches, 0).loss);
  CHECK(engine.train_batch()->loss == serial.step(3).loss);
  CHECK(same_bits(engine.executor().parameters(), serial.parameters()));
}

void check_equals_serial(const Model& model) {
  check_equals_serial(model, "1f1b", 1);
  check_equals_serial(model, "1f1b", 2);
  check_equals_serial(model, "zb-h1", 3);
}

TEST_CASE("A chain of modules and functions equals serial training", "[exec]") {
  check_equals_serial({.layers = {linear("a", 4, 8), tanh("t"), linear("b", 8, 2)}});
}

TEST_CASE("Several inputs, and several outputs for the loss, equal serial training", "[exec]") {
  const auto mix = function_layer("mix", [](const Tensors& x) {
    return Tensors{x.at(0) * x.at(1), x.at(0) + x.at(1)};
  });
  const auto both = module_layer(
      "both", [] { return nn::Linear(4, 2); },
      [](nn::Linear& layer, const Tensors& x) {
        return Tensors{layer->forward(x.at(0)), layer->forward(x.at(1))};
      });
  const Loss loss = [](const Tensors& outputs, const Tensors& targets) {
    return at::mse_loss(outputs.at(0), targets.at(0)) + outputs.at(1).abs().mean();
  };
  check_equals_serial({.layers = {relay(linear("a", 4, 4)), mix, both},
                       .extra_inputs = {at::full({3, 4}, 0.5f)},
                       .loss = loss});
}

struct HalfUsed : nn::Module {
  HalfUsed() : used(register_module("used", nn::Linear(4, 4))) {
    register_module("unused", nn::Linear(4, 4));
    register_parameter("frozen", at::full({4}, 0.25f), /*requires_grad=*/false);
  }
  at::Tensor forward(const at::Tensor& x) {
    return used->forward(x) + named_parameters(false)["frozen"];
  }
  nn::Linear used;
};

TEST_CASE("Unused and frozen parameters equal serial training", "[exec]") {
  const auto half_used = [](const std::string& name) {
    return module_layer(name, [] { return std::make_shared<HalfUsed>(); });
  };
  check_equals_serial({.layers = {half_used("a"), half_used("b"), linear("c", 4, 2)}});
}

TEST_CASE("A stage with only frozen parameters, and one without parameters, equal serial training",
          "[exec]") {
  nn::Linear frozen(4, 4);
  for (at::Tensor& parameter : frozen->parameters())
    parameter.set_requires_grad(false);
  check_equals_serial(
      {.layers = {linear("a", 4, 4), copied_layer("frozen", frozen), linear("b", 4, 2)}});
  check_equals_serial({.layers = {copied_layer("frozen", frozen), tanh("t"), linear("b", 4, 2)}});
  check_equals_serial({.layers = {linear("a", 4, 2), tanh("t"), tanh("u")}});
}

struct Diamond : nn::Module {
  Diamond()
      : left(register_module("left", nn::Linear(4, 4))),
        right(register_module("right", nn::Linear(4, 4))) {}
  at::Tensor forward(const at::Tensor& x) { return left->forward(x) * right->forward(x) + x; }
  nn::Linear left, right;
};

TEST_CASE("Branches inside a stage, and a weight that is used twice, equal serial training",
          "[exec]") {
  const auto twice = module_layer(
      "twice", [] { return nn::Linear(4, 4); },
      [](nn::Linear& layer, const at::Tensor& x) { return layer->forward(layer->forward(x)); });
  check_equals_serial(
      {.layers = {module_layer("diamond", [] { return std::make_shared<Diamond>(); }), twice,
                  linear("out", 4, 2)}});
}

TEST_CASE("Masks, integers and floats without gradient are sent along with the activations",
          "[exec]") {
  const auto masked = [](const std::string& name) {
    return function_layer(name, [](const Tensors& x) {
      return Tensors{(x.at(0) + x.at(3)).masked_fill(x.at(1), 0) * x.at(2), x.at(1), x.at(2),
                     x.at(3)};
    });
  };
  const auto first = function_layer("first", [](const Tensors& x) { return x.at(0); });
  check_equals_serial({.layers = {relay(linear("a", 4, 4)), masked("m1"), relay(linear("b", 4, 4)),
                                  masked("m2"), first, linear("c", 4, 2)},
                       .extra_inputs = {at::eye(3, 4).to(at::kBool), at::full({1}, 3, at::kLong),
                                        at::full({4}, 0.125f)}});
}

TEST_CASE("Integers that one layer creates can be used by another", "[exec]") {
  const auto bucket = function_layer("bucket", [](const at::Tensor& x) {
    return Tensors{x, (x.abs() * 4).to(at::kLong).clamp_max(7)};
  });
  const auto look_up = module_layer(
      "look_up", [] { return nn::Embedding(8, 4); },
      [](nn::Embedding& table, const Tensors& x) {
        return x.at(0) + table->forward(x.at(1)).sum(2);
      });
  check_equals_serial({.layers = {linear("a", 4, 4), bucket, look_up, linear("b", 4, 2)}});
}

TEST_CASE("Zero-size, scalar and non-contiguous tensors can be sent between stages", "[exec]") {
  const auto spread = function_layer("spread", [](const at::Tensor& x) {
    return Tensors{x.t(), x.narrow(0, 0, 0), x.sum()};
  });
  const auto gather = function_layer(
      "gather", [](const Tensors& x) { return x.at(0).t() + x.at(2) + x.at(1).sum(); });
  const auto pass = function_layer("pass", [](const Tensors& x) { return x; });
  check_equals_serial({.layers = {linear("a", 4, 4), spread, pass, gather, linear("b", 4, 2)}});
}

TEST_CASE("An unused output has no gradient", "[exec]") {
  const auto fork = module_layer(
      "fork", [] { return nn::Linear(4, 4); },
      [](nn::Linear& layer, const at::Tensor& x) {
        return Tensors{layer->forward(x), x * 2};
      });
  const auto ignore = function_layer("ignore", [](const Tensors& x) { return x.at(0).tanh(); });
  check_equals_serial({.layers = {linear("a", 4, 4), fork, ignore, linear("b", 4, 2)}});
}

TEST_CASE("Skip connections across stages equal serial training", "[exec]") {
  const auto add = [](const at::Tensor& value, const at::Tensor& skip) { return value + skip; };
  check_equals_serial(
      {.layers = with_skips({linear("a", 4, 4), PushSkip{"x"}, tanh("t"), PushSkip{"y"},
                             linear("b", 4, 4), PopSkip{"x", add}, linear("c", 4, 4),
                             PopSkip{"y", add}, linear("d", 4, 2)})});
}

TEST_CASE("A weight shared by two stages equals serial training", "[exec]") {
  const auto build = [] { return nn::Linear(4, 4); };
  check_equals_serial(
      {.layers = {TiedLayerSpec{"key", "weight", module_layer("first", build)}, linear("a", 4, 4),
                  TiedLayerSpec{"key", "weight",
                                module_layer("back", build,
                                             [](nn::Linear& layer, const at::Tensor& x) {
                                               return at::matmul(x, layer->weight);
                                             })},
                  linear("b", 4, 2)}});
}

TEST_CASE("Dropout and recomputed layers equal serial training", "[exec]") {
  const std::vector<LayerSpec> layers{
      linear("a", 4, 8),
      random_layer(module_layer("drop", [] { return nn::Dropout(0.5); })),
      tanh("t"),
      linear("b", 8, 8),
      copied_layer("drop2", nn::Dropout(0.25)),
      linear("c", 8, 2)};
  check_equals_serial({.layers = layers});
  check_equals_serial({.layers = layers, .checkpoint_interval = 1});
  check_equals_serial({.layers = layers, .checkpoint_interval = 2});
}

TEST_CASE("Microbatches of different lengths need dynamic shapes", "[exec]") {
  const std::vector<LayerSpec> layers{linear("a", 4, 4), tanh("t"), linear("b", 4, 2)};
  check_equals_serial({.layers = layers, .dynamic_shapes = true});

  const SyntheticData data({}, /*lengths_differ=*/true);
  PipelineEngine engine = engine_for({.layers = layers}, "1f1b", 2);
  engine.set_data(batches_of(data, microbatches));
  std::string message;
  try {
    engine.train_batch();
  } catch (const RankFailure& failure) {
    message = failure.what();
  }
  CAPTURE(message);
  CHECK(message.find("stage 0, microbatch 1: output 0 is Float [4, 4], expected Float [3, 4]") !=
        std::string::npos);
}

}  // namespace model_front_test
