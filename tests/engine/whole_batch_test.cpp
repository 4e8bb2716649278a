#include "pipewright/engine/whole_batch.hpp"

#include <ATen/ATen.h>
#include <torch/nn.h>

#include "exec/support/equals_serial.hpp"
#include "exec/support/small_layers.hpp"
#include "pipewright/engine/engine.hpp"
#include "pipewright/engine/module_layers.hpp"
#include "pipewright/exec/rank/serial.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace whole_batch_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
namespace nn = torch::nn;

at::Tensor error_of_squares(const Tensors& outputs, const Tensors& targets) {
  return at::mse_loss(outputs.at(0), targets.at(0));
}

/// The last layer multiplies by the keyword "shift", if it is given.
std::vector<LayerSpec> layers() {
  const auto shifted = [](nn::Linear& module, const at::Tensor& x, const CallContext& context) {
    const at::Tensor shift = context.find_keyword("shift");
    return shift.defined() ? module(x) * shift : module(x);
  };
  return {test::linear("a", 4, 8), test::tanh("t"), test::linear("b", 8, 8),
          keyword_layer(module_layer(
                            "c", [] { return nn::Linear(8, 2); }, shifted),
                        {"shift"})};
}

PipelineModule model(int pipe, int data = 1, int checkpoint_interval = 0) {
  return {layers(),
          {.topology = plan::pipe_data_topology(pipe, data),
           .partition = std::string("uniform"),
           .loss = error_of_squares,
           .checkpoint_interval = checkpoint_interval}};
}

/// Options for 12 samples in four microbatches.
EngineOptions options() {
  return {.train_batch_size = 12,
          .microbatch_size = 3,
          .optimizer = {.kind = plan::Optimizer::Sgd, .learning_rate = 0.1}};
}

WholeBatch batch_of(int samples) {
  const at::Tensor numbers = at::arange(samples * 4, at::kFloat).view({samples, 4});
  return {.inputs = {(numbers * 0.7).sin()}, .targets = {numbers.narrow(1, 0, 2).cos()}};
}

bool same_bits(const Tensors& a, const Tensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const at::Tensor& x, const at::Tensor& y) { return test::same_bits(x, y); });
}

/// Serial training on the microbatches of the same batch at each step.
struct Serial {
  Serial(const PipelineEngine& engine, const WholeBatch& batch, std::vector<int> groups = {})
      : buffer({.keywords = true}, engine.options().loss), parts(microbatches_of(batch, 4)) {
    setup = engine.setup();
    setup.data = &buffer;
    trainer.emplace(setup, 4, std::move(groups));
  }
  StepResult step(int step) {
    BatchSource source = batches_of(parts);
    REQUIRE(buffer.fill(source, step, 4));
    return trainer->step(step);
  }
  StepBuffer buffer;
  std::vector<Batch> parts;
  TrainingSetup setup;
  std::optional<SerialTrainer> trainer;
};

TEST_CASE(
    "A step on a whole batch is bit-identical to serial training, with its losses and outputs",
    "[exec]") {
  const WholeBatch batch = batch_of(12);
  for (const auto& [pipe, data] : {std::pair{1, 1}, {2, 1}, {4, 1}, {2, 2}}) {
    PipelineEngine engine(model(pipe, data), options());
    std::vector<int> groups;
    for (int m = 0; m < 4; ++m)
      groups.push_back(m * data / 4);
    Serial serial(engine, batch, groups);
    // A step's outputs are those of the weights before it.
    const auto before = engine.evaluate(batch, {.outputs = true}).value();
    for (int step = 0; step < 2; ++step) {
      const auto result = engine.step(batch, {.outputs = true}).value();
      const auto expected = serial.step(step);
      CHECK(result.step.loss == expected.loss);
      CHECK(result.step.losses == expected.losses);
      REQUIRE(result.step.losses.size() == 4);
      REQUIRE(result.outputs.size() == 1);
      if (step == 0) {
        CHECK(result.outputs[0].equal(before.outputs.at(0)));
        for (int m = 0; m < 4; ++m)
          CHECK(result.step.losses[static_cast<std::size_t>(m)] ==
                error_of_squares({before.outputs[0].narrow(0, 3 * m, 3)},
                                 {batch.targets[0].narrow(0, 3 * m, 3)})
                    .item<double>());
        CHECK(before.losses == result.step.losses);
      }
    }
    CHECK(same_bits(engine.executor().parameters(), serial.trainer->parameters()));
    CHECK(engine.next_step() == 2);
    CHECK(engine.step(batch)->outputs.empty());
  }
}

TEST_CASE("If a batch does not divide, each microbatch is weighted by its samples", "[exec]") {
  const WholeBatch batch = batch_of(10);  // 3, 3, 2 and 2
  auto one = options();
  one.train_batch_size = one.microbatch_size = 10;
  PipelineEngine whole(model(1), one);
  const auto expected = whole.step(batch).value();
  for (const auto& [pipe, data] : {std::pair{1, 1}, {2, 1}, {2, 2}}) {
    auto uneven = options();
    uneven.execution.dynamic_shapes = true;
    PipelineEngine engine(model(pipe, data), uneven);
    Serial serial(engine, batch, data == 2 ? std::vector<int>{0, 0, 1, 1} : std::vector<int>());
    const auto result = engine.step(batch, {.outputs = true}).value();
    CHECK(result.step.loss == serial.step(0).loss);
    CHECK(same_bits(engine.executor().parameters(), serial.trainer->parameters()));
    CHECK(result.step.loss == Approx(expected.step.loss).epsilon(1e-6));
    CHECK(result.outputs.at(0).size(0) == 10);
    const auto parameters = engine.executor().parameters();
    const auto those = whole.executor().parameters();
    for (std::size_t p = 0; p < parameters.size(); ++p)
      CHECK(at::allclose(parameters[p], those[p], 1e-5, 1e-6));
  }
}

TEST_CASE("A batch that cannot be split is rejected before anything is computed", "[exec]") {
  PipelineEngine engine(model(2), options());
  const auto before = engine.executor().parameters();
  const auto refusal = [&](const WholeBatch& batch) {
    return test::error_of([&] { engine.step(batch); });
  };
  CHECK(refusal(batch_of(10)) ==
        "the samples of the batch do not divide evenly into 4 microbatches: set "
        "`execution.dynamic_shapes`");
  CHECK(refusal(batch_of(3)) ==
        "inputs: a batch of 3 samples does not fill 4 microbatches: give at least 4 samples, or "
        "have at most 3 microbatches");
  WholeBatch differs = batch_of(12);
  differs.targets = batch_of(8).targets;
  CHECK(refusal(differs) == "the inputs of the batch have 12 samples, but the targets have 8");
  differs = batch_of(12);
  differs.keyword_chunks["shift"] = replicate;
  CHECK(refusal(differs) == "keyword_chunks say how 'shift' is cut, but no such keyword is given");
  CHECK(engine.next_step() == 0);
  CHECK(engine.step(batch_of(12)).has_value());
}

TEST_CASE("The sum of the microbatches' losses has four times the gradient of their mean",
          "[exec]") {
  auto summed = options(), averaged = options();
  summed.loss = LossOf::Sum;
  averaged.optimizer.learning_rate = 0.4;
  summed.optimizer.weight_decay = averaged.optimizer.weight_decay = 0;
  PipelineEngine sum(model(2), summed), mean(model(2), averaged);
  const WholeBatch batch = batch_of(12);
  for (int step = 0; step < 2; ++step) {
    const auto own = sum.step(batch).value(), other = mean.step(batch).value();
    CHECK(own.step.loss == other.step.loss * 4);
    CHECK(own.step.losses == other.step.losses);
  }
  CHECK(same_bits(sum.executor().parameters(), mean.executor().parameters()));
}

TEST_CASE("Keyword arguments reach the layers that name them, on any stage", "[exec]") {
  WholeBatch batch = batch_of(12);
  batch.keywords["shift"] = at::linspace(0.5, 2, 12).view({12, 1});
  WholeBatch halves = batch_of(12);
  halves.keywords["shift"] = at::full({1}, 0.5);
  halves.keyword_chunks["shift"] = replicate;
  for (const auto& [pipe, data, rerun] : {std::tuple{1, 1, 0}, {2, 1, 0}, {2, 2, 0}, {3, 1, 1}}) {
    PipelineEngine engine(model(pipe, data, rerun), options());
    const auto outputs = engine.evaluate(batch_of(12), {.outputs = true})->outputs.at(0);
    CHECK(engine.evaluate(batch, {.outputs = true})
              ->outputs.at(0)
              .equal(outputs * batch.keywords["shift"]));
    CHECK(engine.evaluate(halves, {.outputs = true})->outputs.at(0).equal(outputs * 0.5));
    Serial serial(engine, batch, data == 2 ? std::vector<int>{0, 0, 1, 1} : std::vector<int>());
    for (int step = 0; step < 2; ++step)
      CHECK(engine.step(batch)->step.loss == serial.step(step).loss);
    CHECK(same_bits(engine.executor().parameters(), serial.trainer->parameters()));
  }
}

TEST_CASE("A layer reports a missing keyword argument", "[exec]") {
  const auto needs = [](const at::Tensor& x, const CallContext& context) {
    return x * context.keyword("mask");
  };
  PipelineEngine engine(
      {{keyword_layer(function_layer("masked", needs), {"mask"})}, {.loss = error_of_squares}},
      options());
  CHECK_THROWS_WITH(
      engine.step(batch_of(12)),
      "rank 0, action 0F0, step 0: the batch has no keyword argument 'mask'. Add it to the batch's "
      "`keywords`, and name it in the `keywords` of the layer that takes it");
}

TEST_CASE("A module without a loss returns outputs, and cannot be trained", "[exec]") {
  PipelineEngine engine(
      {layers(), {.topology = plan::pipe_data_topology(2, 1), .partition = std::string("uniform")}},
      options());
  PipelineEngine with(model(2), options());
  WholeBatch batch = batch_of(12);
  const auto expected = with.evaluate(batch, {.outputs = true}).value();
  batch.targets.clear();
  const auto seen = engine.evaluate(batch, {.outputs = true, .loss = false}).value();
  CHECK(seen.outputs.at(0).equal(expected.outputs.at(0)));
  CHECK_FALSE(seen.loss.has_value());
  CHECK(seen.losses.empty());
  CHECK(test::error_of([&] { engine.evaluate(batch); }) ==
        "the module has no loss to evaluate: set PipelineOptions::loss, or `loss` of the "
        "EvaluationOptions to false");
  CHECK(test::error_of([&] { engine.step(batch); }) ==
        "the module has no loss to train by: set PipelineOptions::loss");
  CHECK(with.evaluate(batch_of(12), {.share_loss = false})->loss == expected.loss);
}

TEST_CASE("A custom function transforms each microbatch of the data", "[exec]") {
  const WholeBatch batch = batch_of(12);
  PipelineEngine plain(model(2), options()), changed(model(2), options());
  changed.set_batch_function([](Batch own) {
    own.inputs[0] = own.inputs[0] / 2;
    return own;
  });
  WholeBatch twice = batch;
  twice.inputs[0] = twice.inputs[0] * 2;
  BatchSource data = batches_of(Batch{twice.inputs, twice.targets}, 3);
  CHECK(changed.train_batch(data)->loss == plain.step(batch)->step.loss);
  CHECK_FALSE(changed.train_batch(data).has_value());
  CHECK(same_bits(plain.executor().parameters(), changed.executor().parameters()));
}

}  // namespace whole_batch_test
