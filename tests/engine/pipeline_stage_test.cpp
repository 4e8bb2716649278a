// Custom training loops over single stages, compared with serial training and the engine.

#include "pipewright/engine/pipeline_stage.hpp"

#include <fmt/format.h>
#include <torch/nn.h>

#include <atomic>
#include <thread>

#include "exec/support/bits_in_words.hpp"
#include "exec/support/equals_serial.hpp"
#include "exec/support/processes.hpp"
#include "pipewright/engine/engine.hpp"
#include "pipewright/engine/module_layers.hpp"
#include "pipewright/exec/transport/gloo_transport.hpp"
#include "pipewright/exec/transport/in_process_transport.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace pipeline_stage_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using test::bits_of;
using test::error_of;
using test::line_of_weights;
using test::Ranks;
using test::same_bits;
using test::say;
namespace nn = torch::nn;

constexpr int microbatches = 6;
constexpr int steps = 3;

/// Microbatches with different weights in the loss.
class Weighted final : public Dataset {
 public:
  at::Tensor input(int step, int microbatch) const override {
    return tokens_.input(step, microbatch);
  }
  at::Tensor target(int step, int microbatch) const override {
    return tokens_.target(step, microbatch);
  }
  double weight(int /*step*/, int microbatch) const override {
    return microbatch % 2 == 0 ? 1.5 : 0.5;
  }

 private:
  test::SyntheticTokens tokens_;
};

/// Six layers, of which the first and the last share a weight.
std::vector<LayerSpec> layers() {
  const auto table = [] { return nn::Embedding(32, 16); };
  const auto head = [](nn::Embedding& embedding, const at::Tensor& x) {
    return at::matmul(x, embedding->weight.t());
  };
  const auto block = [] {
    return nn::Sequential(nn::Linear(16, 24), nn::GELU(), nn::Linear(24, 16));
  };
  return {TiedLayerSpec{"table", "weight", module_layer("embedding", table)},
          module_layer("a", block),
          random_layer(module_layer("dropout", [] { return nn::Dropout(0.1); })),
          module_layer("b", block),
          module_layer("norm", [] { return nn::LayerNorm(nn::LayerNormOptions({16})); }),
          TiedLayerSpec{"table", "weight", module_layer("head", table, head)}};
}

PipelineModule module_of(int stages, int checkpoint_interval = 0) {
  return {layers(),
          {.topology = plan::pipe_data_topology(stages, 1),
           .partition = std::string("uniform"),
           .loss = cross_entropy,
           .base_seed = 5,
           .checkpoint_interval = checkpoint_interval}};
}

Batch batch_of(const Dataset& data, int step, int microbatch) {
  return {data.inputs(step, microbatch), data.targets(step, microbatch)};
}

enum class Backward { Whole, Halves };

/// Runs 1F1B. The second halves of split backwards run in reverse order, at the end.
StepResult train_step(PipelineStage& stage, int step, const Dataset& data, Backward how) {
  const int warm_up = std::min(stage.count() - stage.index() - 1, microbatches);
  const auto forward = [&](int m) {
    stage.load(m, batch_of(data, step, m), data.weight(step, m));
    stage.receive_inputs(m);
    stage.forward(m);
    stage.send_outputs(m);
  };
  const auto backward = [&](int m) {
    stage.receive_gradients(m);
    if (how == Backward::Whole)
      stage.backward(m);
    else
      stage.input_gradient(m);
    stage.send_gradients(m);
  };
  stage.begin(step);
  for (int m = 0; m < warm_up; ++m)
    forward(m);
  for (int m = warm_up; m < microbatches; ++m) {
    forward(m);
    backward(m - warm_up);
  }
  for (int m = microbatches - warm_up; m < microbatches; ++m)
    backward(m);
  for (int m = microbatches - 1; m >= 0 && how == Backward::Halves; --m)
    stage.weight_gradient(m);
  return stage.update();
}

/// Runs one thread per rank. Reports the first failure that does not follow from another.
template <class Body>
void run_ranks(int count, Transport& transport, const Body& body) {
  std::vector<std::thread> threads;
  std::vector<std::string> failures(static_cast<std::size_t>(count));
  for (int rank = 0; rank < count; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (const Aborted&) {
        // Another rank has the reason.
      } catch (const std::exception& error) {
        failures[static_cast<std::size_t>(rank)] = error.what();
        transport.abort(error.what());
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  for (const std::string& failure : failures)
    CHECK(failure.empty());
}

struct Trained {
  std::vector<std::vector<StepResult>> results;  // by rank and step
  std::vector<at::Tensor> parameters;
};

Trained train(const PipelineModule& module, PipelineStageOptions options, Backward how) {
  const int ranks = module.stage_count();
  options.transport = make_in_process_transport(ranks);
  std::vector<std::vector<at::Tensor>> parameters(static_cast<std::size_t>(ranks));
  Trained trained{.results = std::vector<std::vector<StepResult>>(parameters.size()),
                  .parameters = {}};
  run_ranks(ranks, *options.transport, [&](int rank) {
    const Weighted data;
    PipelineStage stage(module, rank, options);
    for (int step = 0; step < steps; ++step)
      trained.results[static_cast<std::size_t>(rank)].push_back(train_step(stage, step, data, how));
    parameters[static_cast<std::size_t>(rank)] = stage.parameters();
  });
  for (const auto& own : parameters)
    trained.parameters.insert(trained.parameters.end(), own.begin(), own.end());
  return trained;
}

void check_equals_serial(const Trained& trained, const TrainingSetup& of_stage) {
  const Weighted data;
  TrainingSetup setup = of_stage;
  setup.data = &data;
  std::vector<int> groups;
  for (int m = 0; m < microbatches; ++m)
    groups.push_back(m * std::max(1, setup.gradient_groups) / microbatches);
  SerialTrainer serial(setup, microbatches, groups);
  for (int step = 0; step < steps; ++step) {
    const StepResult expected = serial.step(step);
    for (const auto& of_rank : trained.results) {
      REQUIRE(of_rank.size() == steps);
      const StepResult& result = of_rank[static_cast<std::size_t>(step)];
      CHECK(same_bits(result.loss, expected.loss));
      CHECK(same_bits(result.gradient_norm, expected.gradient_norm));
      CHECK(result.skipped == expected.skipped);
    }
  }
  const auto expected = serial.parameters();
  REQUIRE(trained.parameters.size() == expected.size());
  for (std::size_t p = 0; p < expected.size(); ++p)
    CHECK(same_bits(trained.parameters[p], expected[p]));
}

TEST_CASE("A hand-written 1F1B is bit-identical to serial training", "[exec]") {
  const std::vector<std::pair<std::string, PipelineStageOptions>> cases{
      {"plain", {}},
      {"clipped", {.clip_norm = 0.1}},
      {"groups", {.gradient_groups = 3}},
      {"mixed", {.precision = at::kHalf, .loss_scaling = {.scale = 65536, .dynamic = true}}},
      {"dynamic shapes", {.dynamic_shapes = true}}};
  for (const int stages : {1, 2, 3})
    for (const int interval : {0, 1})
      for (const auto how : {Backward::Whole, Backward::Halves})
        for (auto [name, options] : cases) {
          CAPTURE(stages, interval, name, static_cast<int>(how));
          options.microbatches = microbatches;
          options.optimizer.learning_rate = 1e-2;
          const PipelineModule module = module_of(stages, interval);
          check_equals_serial(train(module, options, how),
                              PipelineStage(module, 0, options).setup());
        }
}

TEST_CASE("A hand-written 1F1B is bit-identical to the engine's", "[exec]") {
  const PipelineModule module = module_of(2);
  const Trained trained = train(module, {.microbatches = microbatches}, Backward::Whole);
  PipelineEngine engine(module, {.train_batch_size = 2 * microbatches, .microbatch_size = 2});
  const Weighted data;
  engine.set_data([&, next = 0]() mutable {
    Batch batch = batch_of(data, next / microbatches, next % microbatches);
    batch.counts = data.weight(0, next++ % microbatches);
    return std::optional(batch);
  });
  for (std::size_t step = 0; step < steps; ++step)
    CHECK(same_bits(engine.train_batch().value().loss, trained.results.at(0).at(step).loss));
  const auto expected = engine.executor().parameters();
  REQUIRE(trained.parameters.size() == expected.size());
  for (std::size_t p = 0; p < expected.size(); ++p)
    CHECK(same_bits(trained.parameters[p], expected[p]));
}

/// There are four stages. Rank 0 has the first and the last, and passes nothing to itself; rank 1
/// does.
TEST_CASE("Stages of a rank pass tensors to each other and step together", "[exec]") {
  const PipelineModule module = module_of(4);
  PipelineStageOptions options{
      .microbatches = microbatches, .clip_norm = 0.1, .ranks = {0, 1, 1, 0}};
  options.transport = make_in_process_transport(2);
  Trained trained{.results = std::vector<std::vector<StepResult>>(2), .parameters = {}};
  std::vector<std::vector<at::Tensor>> parameters(4);
  run_ranks(2, *options.transport, [&](int rank) {
    const Weighted data;
    PipelineStage low(module, rank == 0 ? 0 : 1, options), high(module, rank == 0 ? 3 : 2, options);
    for (int step = 0; step < steps; ++step) {
      low.begin(step);
      high.begin(step);
      for (int m = 0; m < microbatches; ++m) {
        low.load(m, batch_of(data, step, m));
        low.receive_inputs(m);
        low.forward(m);
        if (rank == 0)
          low.send_outputs(m);
        else
          high.set_inputs(m, low.take_outputs(m));
        high.load(m, batch_of(data, step, m), data.weight(step, m));
        if (rank == 0)
          high.receive_inputs(m);
        high.forward(m);
        high.send_outputs(m);
      }
      for (int m = microbatches - 1; m >= 0; --m) {
        high.receive_gradients(m);
        high.backward(m);
        if (rank == 0)
          high.send_gradients(m);
        else
          low.set_output_gradients(m, high.take_input_gradients(m));
        if (rank == 0)
          low.receive_gradients(m);
        low.backward(m);
        low.send_gradients(m);
      }
      trained.results[static_cast<std::size_t>(rank)].push_back(update_together({&low, &high}));
    }
    parameters[rank == 0 ? 0 : 1] = low.parameters();
    parameters[rank == 0 ? 3 : 2] = high.parameters();
  });
  for (const auto& own : parameters)
    trained.parameters.insert(trained.parameters.end(), own.begin(), own.end());
  check_equals_serial(trained, PipelineStage(module, 0, options).setup());
}

TEST_CASE("Without a transport, the loop moves tensors itself", "[exec]") {
  const PipelineModule module = module_of(3);
  const PipelineStageOptions options{.microbatches = microbatches, .clip_norm = 0.1};
  std::vector<PipelineStage> stages;
  for (int index = 0; index < 3; ++index)
    stages.emplace_back(module, index, options);
  const Weighted data;
  Trained trained{.results = std::vector<std::vector<StepResult>>(1), .parameters = {}};
  for (int step = 0; step < steps; ++step) {
    for (PipelineStage& stage : stages)
      stage.begin(step);
    for (int m = 0; m < microbatches; ++m) {
      for (std::size_t s = 0; s < stages.size(); ++s) {
        stages[s].load(m, batch_of(data, step, m), data.weight(step, m));
        if (s > 0)
          stages[s].set_inputs(m, stages[s - 1].take_outputs(m));
        stages[s].forward(m);
      }
      for (std::size_t s = stages.size(); s-- > 0;) {
        if (s + 1 < stages.size())
          stages[s].set_output_gradients(m, stages[s + 1].take_input_gradients(m));
        stages[s].backward(m);
      }
    }
    trained.results[0].push_back(update_together({&stages[0], &stages[1], &stages[2]}));
  }
  for (const PipelineStage& stage : stages) {
    const auto own = stage.parameters();
    trained.parameters.insert(trained.parameters.end(), own.begin(), own.end());
  }
  check_equals_serial(trained, stages[0].setup());
}

constexpr auto over_gloo = "rank of a 1F1B of one's own";

TEST_CASE(over_gloo, "[.]") {
  const auto place = test::rank_place();
  if (!place)
    return;
  try {
    Job job(place->environment, {.join_timeout = std::chrono::seconds(20)});
    const Weighted data;
    const PipelineModule module = module_of(2);
    PipelineStage stage(module, job.rank(),
                        {.microbatches = microbatches,
                         .clip_norm = 0.1,
                         .dynamic_shapes = place->argument == "dynamic",
                         .transport = make_gloo_transport(job)});
    for (int step = 0; step < steps; ++step)
      say("loss " +
          bits_of(train_step(stage, step, data,
                             place->argument == "halves" ? Backward::Halves : Backward::Whole)
                      .loss));
    say(line_of_weights(stage.parameters()));
  } catch (const std::exception& error) {
    say(error.what());
  }
}

TEST_CASE("A hand-written 1F1B over Gloo is bit-identical to serial training", "[exec]") {
  const PipelineModule module = module_of(2);
  const PipelineStageOptions options{.microbatches = microbatches, .clip_norm = 0.1};
  const PipelineStage first(module, 0, options);
  const Weighted data;
  TrainingSetup setup = first.setup();
  setup.data = &data;
  SerialTrainer serial(setup, microbatches);
  std::string losses;
  for (int step = 0; step < steps; ++step)
    losses += "loss " + bits_of(serial.step(step).loss) + "\n";
  const auto weights = serial.parameters();
  const auto end_of_first = weights.begin() + std::ssize(first.parameters());
  for (const std::string argument : {"whole", "halves", "dynamic"}) {
    CAPTURE(argument);
    Ranks ranks({.size = 2, .test_case = over_gloo, .argument = argument});
    CHECK(ranks.said(0) == losses + line_of_weights({weights.begin(), end_of_first}) + "\n");
    CHECK(ranks.said(1) == losses + line_of_weights({end_of_first, weights.end()}) + "\n");
    CHECK(ranks.status(0) == 0);
    CHECK(ranks.status(1) == 0);
  }
}

TEST_CASE("A stage knows its shapes before anything runs, and rejects others", "[exec]") {
  const PipelineModule module = module_of(3);
  const test::SyntheticTokens data;
  const PipelineStageOptions options{.microbatches = 2, .example = {data.input(0, 0)}};
  const PipelineStage first(module, 0, options), last(module, 2, options);
  PipelineStage middle(module, 1, options);
  REQUIRE(first.input_shapes().size() == 1);
  CHECK(first.input_shapes()[0].sizes() == std::vector<std::int64_t>{2, 8});
  CHECK(first.input_shapes()[0].scalar_type() == at::kLong);
  for (const Tensors* shapes :
       {&first.output_shapes(), &middle.input_shapes(), &middle.output_shapes()}) {
    REQUIRE(shapes->size() == 1);
    CHECK(shapes->at(0).is_meta());
    CHECK(shapes->at(0).sizes() == std::vector<std::int64_t>{2, 8, 16});
  }
  CHECK(last.output_shapes().at(0).sizes() == std::vector<std::int64_t>{2, 8, 32});
  middle.begin(0);
  CHECK(error_of([&] {
          middle.set_inputs(0, {at::zeros({2, 7, 16})});
        }) ==
        "stage 1, microbatch 0: input 0 is Float [2, 7, 16], expected Float [2, 8, 16]; shapes "
        "that change from microbatch to microbatch need `dynamic_shapes`");

  PipelineStage told(module, 1, {.inputs = {at::zeros({3, 16})}, .outputs = {at::zeros({3, 16})}});
  CHECK(told.output_shapes().at(0).sizes() == std::vector<std::int64_t>{3, 16});
  told.begin(0);
  CHECK_THROWS(told.set_inputs(0, {at::zeros({2, 16})}));

  const PipelineModule by_numbers(
      {function_layer("chosen", [](const at::Tensor& x) { return x.masked_select(x > 0); })},
      {.loss = cross_entropy});
  CHECK(error_of([&] { PipelineStage(by_numbers, 0, {.example = {at::zeros({3})}}); }) ==
        "layer chosen: the shape of its output for the example is unknown before it runs: set "
        "inputs and outputs of each stage instead of the example, or leave all three out");
}

TEST_CASE("Calls of a stage that come too early, twice or to the wrong stage are rejected",
          "[exec]") {
  const PipelineModule module = module_of(2);
  const test::SyntheticTokens data;
  PipelineStage first(module, 0, {.microbatches = 2}), last(module, 1, {.microbatches = 2});
  CHECK(error_of([&] { first.forward(0); }) == "stage 0: forward comes after begin");
  first.begin(0);
  last.begin(0);
  CHECK(error_of([&] { first.forward(2); }) ==
        "stage 0: forward of microbatch 2, but a step has 2");
  CHECK(error_of([&] { first.forward(0); }) == "stage 0, microbatch 0: forward comes after load");
  CHECK(error_of([&] { last.forward(0); }) ==
        "stage 1, microbatch 0: forward comes after receive_inputs or set_inputs");
  CHECK(error_of([&] { first.set_inputs(0, {}); }) ==
        "stage 0, microbatch 0: set_inputs is not for the first stage: call load");
  first.load(0, batch_of(data, 0, 0));
  first.receive_inputs(0);
  first.forward(0);
  CHECK(error_of([&] { first.forward(0); }) ==
        "stage 0, microbatch 0: forward has been called before");
  CHECK(error_of([&] { first.send_outputs(0); }) ==
        "stage 0: send_outputs cannot reach stage 1, because there is no transport: pass tensors "
        "with take_outputs");
  last.set_inputs(0, first.take_outputs(0));
  CHECK(error_of([&] { last.forward(0); }) ==
        "stage 1, microbatch 0: forward comes after load, which gives the last stage its targets");
  last.load(0, batch_of(data, 0, 0));
  CHECK(error_of([&] { last.backward(0); }) ==
        "stage 1, microbatch 0: backward comes after forward");
  last.forward(0);
  CHECK(error_of([&] { last.weight_gradient(0); }) ==
        "stage 1, microbatch 0: weight_gradient comes after input_gradient");
  last.input_gradient(0);
  CHECK(error_of([&] { first.backward(0); }) ==
        "stage 0, microbatch 0: backward comes after receive_gradients or set_output_gradients");
  CHECK(error_of([&] { last.update(); }) ==
        "stage 1, microbatch 0: update comes after its backward, whole or in both halves");
}

TEST_CASE("Stages that need unreachable stages are rejected", "[exec]") {
  const PipelineModule module = module_of(2);
  const auto train_one = [&](const PipelineStageOptions& options) {
    PipelineStage first(module, 0, options);
    first.begin(0);
    first.load(0, batch_of(test::SyntheticTokens(), 0, 0));
    first.forward(0);
    first.set_output_gradients(0, {at::ones({2, 8, 16})});
    first.backward(0);
    first.update();
  };
  CHECK(error_of([&] { train_one({}); }) ==
        "stage 0 needs the gradients of stage 1 for a weight that they share: give them a "
        "transport, or call update_together with both");
  CHECK(error_of([&] {
          train_one({.transport = make_in_process_transport(1), .ranks = {0, 0}});
        }) == "stages 0 and 1 are both on rank 0: call update_together with all of its stages");
  const auto refusal = [&](int index, const PipelineStageOptions& options) {
    return error_of([&] { PipelineStage(module, index, options); });
  };
  CHECK(refusal(2, {}) == "stage 2 requested, but the module has 2 stages");
  CHECK(refusal(0, {.microbatches = 0}) == "microbatches is 0, but must be at least 1");
  CHECK(refusal(0, {.microbatches = 4, .gradient_groups = 3}) ==
        "3 gradient groups do not divide 4 microbatches");
  CHECK(refusal(0, {.ranks = {0}}) == "ranks says where 1 stages are, but the module has 2");
  const PipelineModule side_by_side(
      layers(), {.topology = plan::pipe_data_topology(2, 2), .loss = cross_entropy});
  CHECK(error_of([&] { PipelineStage(side_by_side, 0); }) ==
        "a PipelineStage supports neither data nor tensor parallelism: leave the axes data and "
        "tensor out of the topology");
}

}  // namespace pipeline_stage_test
