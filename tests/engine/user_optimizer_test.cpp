// Custom optimizers and learning rates.

#include <torch/nn.h>
#include <torch/optim.h>

#include "exec/support/engine_equals_serial.hpp"
#include "pipewright/engine/module_layers.hpp"
#include "pipewright/exec/checkpoint/checkpoint_writer.hpp"
#include "pipewright/exec/checkpoint/list_checkpoints.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/exec/training/torch_optimizer.hpp"
#include "support/temp_folder.hpp"

namespace user_optimizer_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using test::check_engine_equals_serial;
using test::check_same_bits;
using test::error_of;
using test::SyntheticData;
namespace nn = torch::nn;
namespace optim = torch::optim;

PipelineModule small_model(int pipe, int data = 1) {
  const auto linear = [](const std::string& name, int in, int out) {
    return module_layer(name, [in, out] { return nn::Linear(in, out); });
  };
  const auto tanh = [](const at::Tensor& input) { return input.tanh(); };
  return {{linear("a", 4, 24), function_layer("t", tanh), linear("b", 24, 8), linear("c", 8, 2)},
          {.topology = plan::pipe_data_topology(pipe, data),
           .partition = std::string("uniform"),
           .loss = [](const Tensors& outputs, const Tensors& targets) {
             return at::mse_loss(outputs.at(0), targets.at(0));
           }}};
}

/// Matrices decay, and the layer "c" learns at half the rate.
ParameterRule rule(const RuledParameter& parameter) {
  return {.weight_decay = is_matrix(parameter) ? 0.1 : 0, .rate = parameter.layer == "c" ? 0.5 : 1};
}

EngineOptions with(MakeOptimizer own, const std::string& schedule = "1f1b", int zero = 0) {
  return test::four_microbatches(
      {.schedule = schedule,
       .optimizer = {.learning_rate = 0.05, .rule = rule, .own = std::move(own)},
       .zero = zero});
}

const MakeOptimizer adagrad = torch_optimizer<optim::Adagrad>(optim::AdagradOptions().eps(1e-6));

const std::map<std::string, MakeOptimizer> kinds{
    {"adagrad", adagrad},
    {"adam", torch_optimizer<optim::Adam>(optim::AdamOptions().amsgrad(true))},
    {"adamw", torch_optimizer<optim::AdamW>(optim::AdamWOptions())},
    {"rmsprop",
     torch_optimizer<optim::RMSprop>(optim::RMSpropOptions().momentum(0.5).centered(true))},
    {"sgd", torch_optimizer<optim::SGD>(optim::SGDOptions(1).momentum(0.9).nesterov(true))}};

TEST_CASE("An optimizer of LibTorch steps as in a training without a pipeline", "[exec]") {
  // By hand: one module, one optimizer with a group per rule, one backward per microbatch.
  const SyntheticData data;
  for (const auto& [name, make] : kinds) {
    CAPTURE(name);
    PipelineEngine engine(small_model(2), with(make));
    engine.set_data(batches_of(data, 4));
    const auto layers = engine.module().layers();
    std::vector<std::shared_ptr<Layer>> model;
    for (int layer = 0; layer < 4; ++layer)
      model.push_back(build_layer(engine.setup(), layer));
    const auto parameter = [&](std::size_t layer, const char* key) {
      return *model[layer]->named_parameters().find(key);
    };
    const auto own = [&](std::size_t layer, const char* key) {
      return OptimizerParameter{{layers[layer].name, key, {}}, parameter(layer, key)};
    };
    const auto by_hand = make({{{0.1, 1}, {own(0, "weight"), own(2, "weight")}},
                               {{0, 1}, {own(0, "bias"), own(2, "bias")}},
                               {{0.1, 0.5}, {own(3, "weight")}},
                               {{0, 0.5}, {own(3, "bias")}}});
    for (int step = 0; step < 3; ++step) {
      engine.train_batch();
      for (int m = 0; m < 4; ++m) {
        Tensors values = data.inputs(step, m);
        for (const auto& layer : model)
          values = layer->forward_all(values, {});
        (at::mse_loss(values.at(0), data.targets(step, m).at(0)) / 4).backward();
      }
      by_hand->step(0.05);
      for (const auto& layer : model)
        layer->zero_grad();
    }
    std::vector<at::Tensor> expected;
    for (const auto& layer : model)
      for (const at::Tensor& each : layer->parameters())
        expected.push_back(each);
    check_same_bits(engine.executor().parameters(), expected);
  }
}

TEST_CASE("A custom optimizer is bit-identical to serial training under every plan", "[exec]") {
  for (const auto& [name, make] : kinds) {
    CAPTURE(name);
    check_engine_equals_serial(small_model(3), with(make, "zb-h1"));
    check_engine_equals_serial(small_model(2, 2), with(make));
    for (const int zero : {1, 2, 3})
      check_engine_equals_serial(small_model(2, 2), with(make, "1f1b", zero));
  }
}

TEST_CASE(
    "A custom optimizer gets clipped and unscaled gradients, and 16-bit parameters' master copies",
    "[exec]") {
  EngineOptions options = with(adagrad);
  options.clip_norm = 0.1;
  options.precision = at::kBFloat16;
  options.loss_scaling = {.scale = 1024};
  check_engine_equals_serial(small_model(2), options);
  options.zero = 1;
  check_engine_equals_serial(small_model(2, 2), options);
}

TEST_CASE("A custom optimizer does not step if gradients are not finite", "[exec]") {
  EngineOptions options = with(adagrad);
  options.loss_scaling = {.scale = 8, .dynamic = true};
  const SyntheticData data;
  PipelineEngine engine(small_model(2), options);
  engine.set_data(batches_of(data, 4));
  engine.set_batch_function([](Batch own) {
    own.inputs[0] = own.inputs[0] / 0;
    return own;
  });
  std::vector<at::Tensor> before;
  for (const at::Tensor& parameter : engine.executor().parameters())
    before.push_back(parameter.clone());
  CHECK(engine.train_batch().value().skipped);
  check_same_bits(engine.executor().parameters(), before);
}

/// SGD with the kernel of the executor's own SGD.
struct Plain final : UserOptimizer {
  explicit Plain(const std::vector<ParameterGroup>& groups) : values(groups.at(0).values()) {}
  void step(double learning_rate) override {
    Tensors gradients;
    for (const at::Tensor& value : values)
      gradients.push_back(value.grad());
    at::_fused_sgd_(values, gradients, {}, /*weight_decay=*/0, /*momentum=*/0, learning_rate,
                    /*dampening=*/0, /*nesterov=*/false, /*maximize=*/false,
                    /*is_first_step=*/false);
  }
  Tensors values;
};

TEST_CASE("A custom optimizer steps without a flush", "[exec]") {
  const SyntheticData data;
  const auto trained = [&](const OptimizerOptions& optimizer) {
    PipelineEngine engine(
        small_model(2), test::four_microbatches({.schedule = "pipedream", .optimizer = optimizer}));
    engine.set_data(batches_of(data, 4));
    for (int step = 0; step < 3; ++step)
      engine.train_batch();
    std::vector<at::Tensor> parameters;
    for (const at::Tensor& parameter : engine.executor().parameters())
      parameters.push_back(parameter.clone());
    return parameters;
  };
  OptimizerOptions options{.kind = plan::Optimizer::Sgd, .learning_rate = 0.05, .weight_decay = 0};
  const auto expected = trained(options);
  options.own = [](const auto& groups) { return std::make_unique<Plain>(groups); };
  check_same_bits(trained(options), expected);
}

TEST_CASE("A custom optimizer's state is saved, and loaded under any ZeRO stage", "[exec]") {
  const SyntheticData data;
  const auto engine_of = [&](const MakeOptimizer& make, int zero, int first_step) {
    EngineOptions options = with(make, "1f1b", zero);
    // With one microbatch per pipeline, all ZeRO stages sum gradients in the same order.
    options.train_batch_size = 6;
    options.first_step = first_step;
    auto engine = std::make_unique<PipelineEngine>(small_model(2, 2), options);
    engine->set_data(batches_of(data, 2, first_step));
    return engine;
  };
  for (const auto& [name, make] : kinds)
    for (const int from : {0, 2}) {
      const test::TempFolder folder;
      const auto first = engine_of(make, from, 0);
      for (int step = 0; step < 2; ++step)
        first->train_batch();
      {
        CheckpointWriter writer(folder.path(), {});
        writer.save(first->executor().snapshot(2));
        writer.wait();
        REQUIRE(writer.failure().value_or("") == "");
      }
      const Checkpoint stored =
          open_newest(folder.path(), [](const std::string& message) { FAIL_CHECK(message); });
      CHECK(stored.training().optimizer == "own");
      std::vector<std::unique_ptr<PipelineEngine>> others;
      for (const int to : {0, 1, 3}) {
        others.push_back(engine_of(make, to, 2));
        others.back()->executor().restore(stored);
        others.back()->train_batch();
      }
      first->train_batch();
      for (const auto& other : others) {
        CAPTURE(name, from);
        check_same_bits(other->executor().parameters(), first->executor().parameters());
      }
    }
}

struct Wrong final : UserOptimizer {
  explicit Wrong(UserOptimizerState state) : kept(std::move(state)) {}
  void step(double) override {}
  std::vector<UserOptimizerState> states() override { return {kept}; }
  UserOptimizerState kept;
};

TEST_CASE("Invalid optimizers for the parameters are rejected", "[exec]") {
  const auto error = [](const MakeOptimizer& own) {
    return error_of([&] { PipelineEngine(small_model(1), with(own)); });
  };
  CHECK(error([](const auto&) { return nullptr; }) ==
        "the function that makes an optimizer returned null");
  CHECK(error([](const std::vector<ParameterGroup>& groups) {
          return std::make_unique<Wrong>(
              UserOptimizerState{groups[0].parameters[0].value, "sum", at::zeros({3})});
        }) ==
        "the optimizer's state 'sum' has 3 elements, but its parameter has 96. It must have as "
        "many, or be a scalar tensor");
  CHECK(error([](const auto&) {
          return std::make_unique<Wrong>(UserOptimizerState{at::zeros({3}), "sum", at::zeros({3})});
        }) == "the optimizer has a state 'sum' for a tensor that is not one of its parameters");
  CHECK(error(torch_optimizer<optim::SGD>(optim::SGDOptions(1).momentum(0.9).dampening(0.5))) ==
        "torch::optim::SGD with a dampening of 0.5 cannot start from a checkpoint, because its "
        "first step is not dampened. Leave dampening out");
  CHECK(error([](const std::vector<ParameterGroup>& groups) {
          return wrapped(std::make_unique<optim::Adagrad>(groups[0].values()), groups);
        }) == "the optimizer has 1 parameter groups, but the stage has 4. Make one for each");
}

TEST_CASE("A custom learning rate is evaluated at each step", "[exec]") {
  const auto rate = [](int step) { return step == 1 ? 0 : 0.05; };
  EngineOptions options = test::four_microbatches({.optimizer = {.rate_at = rate}});
  check_engine_equals_serial(small_model(2), options);
  CHECK(learning_rate_at(options.optimizer, 0) == 0.05);
  const SyntheticData data;
  PipelineEngine engine(small_model(2), options);
  engine.set_data(batches_of(data, 4));
  engine.train_batch();
  const at::Tensor before = engine.executor().parameters().front().clone();
  engine.train_batch();
  CHECK(test::same_bits(engine.executor().parameters().front(), before));
  engine.train_batch();
  CHECK_FALSE(test::same_bits(engine.executor().parameters().front(), before));
}

}  // namespace user_optimizer_test
