#include "pipewright/engine/engine.hpp"

#include <fmt/format.h>
#include <torch/nn.h>

#include <cstring>
#include <thread>

#include "exec/support/small_gpt.hpp"
#include "exec/support/small_layers.hpp"
#include "exec/support/synthetic_data.hpp"
#include "pipewright/engine/module_layers.hpp"
#include "pipewright/exec/rank/serial.hpp"
#include "pipewright/exec/transport/in_process_transport.hpp"
#include "pipewright/plan/generators/generators.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace engine_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using test::linear;
using test::SyntheticData;
using test::tanh;
namespace nn = torch::nn;

PipelineModule small_model(int pipe, int data = 1, int stages_per_rank = 1) {
  const Loss loss = [](const Tensors& outputs, const Tensors& targets) {
    return at::mse_loss(outputs.at(0), targets.at(0));
  };
  return {{linear("a", 4, 8), tanh("t"), linear("b", 8, 8), tanh("u"), linear("c", 8, 2)},
          {.topology = plan::pipe_data_topology(pipe, data),
           .stages_per_rank = stages_per_rank,
           .partition = std::string("uniform"),
           .loss = loss}};
}

/// Options with microbatches of three samples.
EngineOptions batches_of_12() { return {.train_batch_size = 12, .microbatch_size = 3}; }

bool same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const at::Tensor& x, const at::Tensor& y) {
                      return x.sizes() == y.sizes() &&
                             std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
                    });
}

/// Returns a source that ends after `count` microbatches.
BatchSource first_of(BatchSource source, int count) {
  return [source, count]() mutable -> std::optional<Batch> {
    return count-- > 0 ? source() : std::nullopt;
  };
}

const SyntheticData made_up;

TEST_CASE(
    "Topologies with any order of axes and tensor parallelism are bit-identical to serial training",
    "[exec]") {
  const test::SyntheticTokens tokens;
  for (const auto& topology : {plan::Topology({"data", "pipe"}, {2, 2}),
                               plan::Topology({"tensor", "data", "pipe"}, {2, 2, 2}),
                               plan::Topology({"pipe", "data", "model"}, {2, 2, 2})}) {
    PipelineEngine engine(
        {gpt_layers(test::small_shape),
         {.topology = topology, .partition = std::string("uniform"), .loss = cross_entropy}},
        {.train_batch_size = 8, .microbatch_size = 2});
    engine.set_data(batches_of(tokens, 4));
    auto setup = engine.setup();
    setup.data = &tokens;
    SerialTrainer serial(setup, 4, {0, 0, 1, 1});
    for (int step = 0; step < 2; ++step)
      CHECK(engine.train_batch()->loss == serial.step(step).loss);
    CHECK(same_bits(engine.executor().parameters(), serial.parameters()));
  }
}

TEST_CASE("Data-parallel replicas train on one batch, and know its mean loss", "[exec]") {
  for (const int replicas : {1, 2, 4}) {
    PipelineEngine engine(small_model(2, replicas), batches_of_12());
    CHECK(engine.microbatches() == 4 / replicas);
    engine.set_data(batches_of(made_up, 4));
    auto setup = engine.setup();
    setup.data = &made_up;
    std::vector<int> group_of_microbatch;
    for (int m = 0; m < 4; ++m)
      group_of_microbatch.push_back(m * replicas / 4);
    SerialTrainer serial(setup, 4, group_of_microbatch);
    for (int step = 0; step < 3; ++step)
      CHECK(engine.train_batch()->loss == serial.step(step).loss);
    CHECK(same_bits(engine.executor().parameters(), serial.parameters()));
  }
}

/// Four microbatches of 3 rows of 5 tokens. In microbatch m, 3 · (m + 1) tokens count.
Batch padded_tokens() {
  const at::Tensor inputs = at::arange(4 * 3 * 5).remainder(7).view({12, 5});
  at::Tensor targets = (inputs * 3 + 1).remainder(7);
  for (int m = 0; m < 4; ++m)
    targets.narrow(0, 3 * m, 3).narrow(1, m + 1, 4 - m).fill_(ignored_target);
  return {{inputs}, {targets}};
}

TEST_CASE("The mean over padded microbatches is the mean over all tokens of the batch", "[exec]") {
  const auto train = [](int pipe, int data, int microbatches) {
    const Batch all = padded_tokens();
    PipelineEngine engine({{module_layer("table", [] { return nn::Embedding(7, 6); }),
                            linear("mix", 6, 6), tanh("t"), linear("words", 6, 7)},
                           {.topology = plan::pipe_data_topology(pipe, data),
                            .partition = std::string("uniform"),
                            .loss = cross_entropy}},
                          {.train_batch_size = 12,
                           .microbatch_size = 12 / microbatches,
                           .optimizer = {.kind = plan::Optimizer::Sgd, .learning_rate = 0.5}});
    engine.set_data([source = batches_of(all, 12 / microbatches)]() mutable {
      auto batch = source();
      if (batch)
        batch->counts = (batch->targets[0] != ignored_target).sum().item<double>();
      return batch;
    });
    const double loss = engine.train_batch()->loss;
    return std::pair(loss, engine.executor().parameters());
  };
  const auto [whole_loss, whole] = train(1, 1, 1);
  for (const auto& [pipe, data] : {std::pair{1, 1}, {2, 1}, {2, 2}}) {
    const auto [loss, parameters] = train(pipe, data, 4);
    CHECK(loss == Approx(whole_loss).epsilon(1e-6));
    for (std::size_t p = 0; p < whole.size(); ++p)
      CHECK(at::allclose(parameters[p], whole[p], 1e-5, 1e-6));
  }
}

TEST_CASE("A batch without any weight is rejected", "[exec]") {
  PipelineEngine engine(small_model(1), batches_of_12());
  engine.set_data([source = batches_of(made_up, 4)]() mutable {
    auto batch = source();
    batch->counts = 0;
    return batch;
  });
  CHECK(test::error_of([&] { engine.train_batch(); }) ==
        "the counts of step 0's microbatches sum to 0. At least one microbatch must have a "
        "positive count");
}

TEST_CASE("An engine accepts every kind of schedule, with the number of stages that it needs",
          "[exec]") {
  const auto train = [](const std::string& schedule, int stages_per_rank) {
    auto options = batches_of_12();
    options.schedule = schedule;
    PipelineEngine engine(small_model(2, 1, stages_per_rank), options);
    engine.set_data(batches_of(made_up, 4));
    return engine.train_batch()->loss;
  };
  const double loss = train("gpipe", 1);
  CHECK(train("zb-h1", 1) == loss);
  CHECK(train("interleaved-1f1b", 2) == loss);
  CHECK(train("zbv", 2) == loss);
  CHECK(test::error_of([&] { train("zbv", 1); }) ==
        "schedule zbv has 4 stages on 2 ranks, but the module has 2: set stages_per_rank to 2");
}

TEST_CASE("An engine accepts custom schedules", "[exec]") {
  const auto train = [](plan::ScheduleChoice schedule, int stages_per_rank = 1) {
    auto options = batches_of_12();
    options.schedule = std::move(schedule);
    PipelineEngine engine(small_model(2, 1, stages_per_rank), options);
    engine.set_data(batches_of(made_up, 4));
    return engine.train_batch()->loss;
  };
  const double loss = train("gpipe");
  const plan::Schedule order = plan::parse_csv(
      "0F0,0F1,0I0,0F2,0I1,0W1,0F3,0I2,0W0,0I3,0W3,0W2\n"
      "1F0,1I0,1F1,1I1,1F2,1W1,1I2,1F3,1I3,1W3,1W0,1W2\n",
      "by hand");
  CHECK(train(order) == loss);
  CHECK(train(plan::lower(order, {.communicators = plan::CommunicatorLayout::Pair})) == loss);
  plan::ScheduleDescriptor mine;
  mine.name = "mine";
  mine.chunks = plan::Chunks::Any;
  mine.make = [](const plan::ScheduleRequest& r) -> plan::GeneratedSchedule {
    return {plan::make_looped_bfs(r.ranks, r.microbatches, r.chunks)};
  };
  CHECK(train(mine, 2) == loss);
  CHECK(test::error_of([&] { train(order, 2); }) ==
        "schedule own has 2 stages on 2 ranks, but the module has 4: set stages_per_rank to 1");
  CHECK(test::error_of([&] { train(plan::parse_csv("0F0,0B0\n1F0,1B0\n", "short")); }) ==
        "own is for 2 ranks, 1 microbatches and 2 stages, but 2 ranks, 4 microbatches and 2 stages "
        "are asked for");
}

TEST_CASE("An engine's schedule accepts a group size", "[exec]") {
  auto options = batches_of_12();
  options.schedule = "megatron-interleaved";
  options.schedule_group = 3;
  CHECK(test::error_of([&] {
          PipelineEngine(small_model(2, 1, 2), options);
        }).find("in groups of 3 leave a last group of 1") != std::string::npos);
}

TEST_CASE("The data may end without an error", "[exec]") {
  PipelineEngine engine(small_model(2), batches_of_12());
  engine.set_data(first_of(batches_of(made_up, 4), 9));
  CHECK(engine.train_batch().has_value());
  CHECK(engine.train_batch().has_value());
  CHECK_FALSE(engine.train_batch().has_value());  // one microbatch remains
  CHECK(engine.next_step() == 2);
  engine.set_data(RepeatingLoader([] { return first_of(batches_of(made_up, 4), 3); }));
  for (int step = 0; step < 3; ++step)
    CHECK(engine.train_batch().has_value());
  BatchSource none = first_of(batches_of(made_up, 4), 0);
  CHECK_FALSE(engine.eval_batch(none).has_value());
}

TEST_CASE("An evaluation has its own number of microbatches, and returns outputs", "[exec]") {
  PipelineEngine engine(small_model(2), batches_of_12());
  auto setup = engine.setup();
  setup.data = &made_up;
  SerialTrainer serial(setup, 4);
  const auto expected = serial.evaluate(made_up, 6, 0);

  BatchSource data = batches_of(made_up, 6);
  const auto whole = engine.eval_batch(data, {.microbatches = 6, .outputs = true}).value();
  CHECK(whole.loss == expected.loss);
  REQUIRE(whole.outputs.size() == 1);
  CHECK(whole.outputs[0].sizes() == std::vector<std::int64_t>{18, 2});
  CHECK(whole.outputs[0].equal(merge_outputs(expected.outputs)[0]));

  data = batches_of(made_up, 6);
  const auto mean_output =
      engine.eval_batch(data, {.microbatches = 6, .outputs = true, .merges = {mean()}}).value();
  CHECK(mean_output.outputs[0].equal(merge_outputs(expected.outputs, {mean()})[0]));
  CHECK(engine.eval_batch(data)->outputs.empty());
}

TEST_CASE("An evaluation between two steps does not affect training", "[exec]") {
  PipelineEngine with(small_model(2), batches_of_12()), without(small_model(2), batches_of_12());
  for (PipelineEngine* engine : {&with, &without})
    engine->set_data(batches_of(made_up, 4));
  BatchSource other = batches_of(made_up, 7);
  for (int step = 0; step < 3; ++step) {
    with.eval_batch(other, {.microbatches = 3});
    CHECK(with.train_batch()->loss == without.train_batch()->loss);
  }
}

TEST_CASE("An engine resumes at the step of a checkpoint, and so does its data", "[exec]") {
  auto options = batches_of_12();
  options.first_step = 5;
  options.optimizer.warm_up_steps = 10;
  PipelineEngine engine(small_model(2), options);
  engine.set_data(batches_of(made_up, 4, /*first_step=*/5));
  auto setup = engine.setup();
  setup.data = &made_up;
  SerialTrainer serial(setup, 4);
  for (int step = 5; step < 8; ++step) {
    CHECK(engine.next_step() == step);
    CHECK(engine.train_batch()->loss == serial.step(step).loss);
  }
}

TEST_CASE("A checkpoint of an engine records the microbatch size", "[exec]") {
  PipelineEngine engine(small_model(2), batches_of_12());
  CHECK(engine.executor().snapshot(0).training.microbatch_size == 3);
}

TEST_CASE("The batch size can change between steps, in whole microbatches", "[exec]") {
  auto options = batches_of_12();
  options.precision = at::kBFloat16;  // with master weights
  options.loss_scaling = {.scale = 8, .dynamic = true, .growth_interval = 2};
  PipelineEngine one(small_model(1), options), two(small_model(2), options);
  PipelineEngine same(small_model(2), options);
  for (PipelineEngine* engine : {&one, &two, &same})
    engine->set_data(batches_of(made_up, 4));
  for (int step = 0; step < 3; ++step) {
    const double loss = one.train_batch()->loss;
    CHECK(two.train_batch()->loss == loss);
    same.set_train_batch_size(12);
    CHECK(same.train_batch()->loss == loss);
  }
  for (PipelineEngine* engine : {&one, &two})
    engine->set_train_batch_size(6);
  CHECK(two.train_batch_size() == 6);
  CHECK(two.microbatches() == 2);
  CHECK(two.executor().loss_scale() == same.executor().loss_scale());
  CHECK(one.train_batch()->loss == two.train_batch()->loss);
  CHECK(same_bits(one.executor().parameters(), two.executor().parameters()));
}

TEST_CASE("A change of the batch size keeps every replica of a stage", "[exec]") {
  auto options = batches_of_12();
  options.zero = 1;
  PipelineEngine kept(small_model(2, 2), options), changed(small_model(2, 2), options);
  for (PipelineEngine* engine : {&kept, &changed})
    engine->set_data(batches_of(made_up, 4));
  for (int step = 0; step < 3; ++step) {
    CHECK(kept.train_batch()->loss == changed.train_batch()->loss);
    changed.set_train_batch_size(12);
  }
  CHECK(same_bits(kept.executor().parameters(), changed.executor().parameters()));
}

TEST_CASE("A batch that does not divide is rejected with the nearest valid sizes", "[exec]") {
  PipelineEngine engine(small_model(2, 2), batches_of_12());
  const auto refusal = [&](int samples) {
    return test::error_of([&] { engine.set_train_batch_size(samples); });
  };
  CHECK(refusal(20) ==
        "a batch of 20 samples does not divide into microbatches of 3 in 2 pipelines: the nearest "
        "are 18 and 24");
  CHECK(refusal(5) ==
        "a batch of 5 samples does not divide into microbatches of 3 in 2 pipelines: the nearest "
        "is 6");
  CHECK(engine.train_batch_size() == 12);
}

TEST_CASE("Direct calls of forward, backward and step are rejected with an error message",
          "[exec]") {
  PipelineEngine engine(small_model(1), batches_of_12());
  CHECK(test::error_of([&] {
          engine.forward(at::ones({3, 4}));
        }) ==
        "a pipeline cannot run forward alone: its schedule interleaves forwards, backwards and "
        "optimizer steps of several microbatches; call train_batch, eval_batch, or step with "
        "a batch");
  CHECK(test::error_of([&] { engine.backward(); }).starts_with("a pipeline cannot run backward"));
  CHECK(test::error_of([&] { engine.step(); }).starts_with("a pipeline cannot run step"));
  CHECK(test::error_of([&] { engine.train_batch(); }) ==
        "there is no data to train on: call set_data first");
}

TEST_CASE("The accumulation boundary is between the last backward and the next step", "[exec]") {
  std::atomic<bool> at_forward{false}, at_update{true};
  const PipelineEngine* asked = nullptr;
  auto options = batches_of_12();
  options.execution.observer = [&](const InstructionRecord& record) {
    if (record.instruction.kind == plan::InstructionKind::Forward)
      at_forward = at_forward || asked->is_gradient_accumulation_boundary();
    // The first stage finishes last.
    if (record.instruction.kind == plan::InstructionKind::OptimizerStep &&
        record.instruction.stage == 0)
      at_update = at_update && asked->is_gradient_accumulation_boundary();
  };
  PipelineEngine engine(small_model(2), options);
  asked = &engine;
  CHECK(engine.is_gradient_accumulation_boundary());
  engine.set_data(batches_of(made_up, 4));
  engine.train_batch();
  CHECK(engine.is_gradient_accumulation_boundary());
  CHECK_FALSE(at_forward);
  CHECK(at_update);
}

TEST_CASE("Twenty steps hold no more memory than two", "[exec]") {
  std::vector<std::int64_t> held(2);  // bytes held when each rank's first instruction starts
  auto options = batches_of_12();
  options.execution.observer = [&](const InstructionRecord& record) {
    if (record.instruction.microbatch == 0 &&
        record.instruction.kind == plan::InstructionKind::Forward)
      held[static_cast<std::size_t>(record.rank)] = record.held_before.value;
  };
  PipelineEngine engine(small_model(2), options);
  engine.set_data(batches_of(made_up, 4));
  BatchSource other = batches_of(made_up, 4);
  std::vector<std::int64_t> after_two;
  for (int step = 0; step < 20; ++step) {
    engine.train_batch();
    if (step == 1)
      after_two = held;
    engine.eval_batch(other, {.outputs = true});
  }
  CHECK(held == after_two);
}

/// Runs one engine per rank, as in a job of several processes, on threads that share a transport.
template <class Body>
void run_job(int pipe, int data, const Body& body) {
  const std::shared_ptr<Transport> transport = make_in_process_transport(pipe * data);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < pipe * data; ++rank)
    threads.emplace_back([&, rank] {
      auto options = batches_of_12();
      options.execution = {.pin_threads = false, .transport = transport, .only_rank = rank};
      PipelineEngine engine(small_model(pipe, data), options);
      body(rank, engine);
    });
  for (std::thread& thread : threads)
    thread.join();
}

TEST_CASE(
    "In a job of processes, only the first and the last stage read data, and all know the loss",
    "[exec]") {
  constexpr int ranks = 3;
  std::vector<int> microbatches_read(ranks, 0), steps(ranks, 0);
  std::vector<std::vector<double>> losses(ranks);
  std::vector<std::pair<bool, bool>> ends(ranks);
  std::vector<std::size_t> outputs(ranks);
  run_job(ranks, 1, [&](int rank, PipelineEngine& engine) {
    const auto at = static_cast<std::size_t>(rank);
    ends[at] = {engine.is_first_stage(), engine.is_last_stage()};
    // The last rank's data is longer: the shortest determines the end.
    engine.set_data(
        [&, at, source = first_of(batches_of(made_up, 4), rank == 2 ? 12 : 8)]() mutable {
          auto batch = source();
          microbatches_read[at] += batch.has_value() ? 1 : 0;
          return batch;
        });
    while (const auto result = engine.train_batch())
      losses[at].push_back(result->loss);
    steps[at] = engine.next_step();
    BatchSource other = batches_of(made_up, 4);
    outputs[at] = engine.eval_batch(other, {.outputs = true})->outputs.size();
  });
  PipelineEngine whole(small_model(ranks), batches_of_12());
  whole.set_data(first_of(batches_of(made_up, 4), 8));
  std::vector<double> expected;
  while (const auto result = whole.train_batch())
    expected.push_back(result->loss);

  CHECK((ends == std::vector<std::pair<bool, bool>>{{true, false}, {false, false}, {false, true}}));
  CHECK(microbatches_read == std::vector<int>{8, 0, 12});
  CHECK(steps == std::vector<int>{2, 2, 2});
  CHECK(losses == std::vector<std::vector<double>>(ranks, expected));
  CHECK(outputs == std::vector<std::size_t>{0, 0, 1});
}

TEST_CASE("In a job of processes, each pipeline keeps its part of the batch", "[exec]") {
  std::vector<double> losses(4);
  run_job(2, 2, [&](int rank, PipelineEngine& engine) {
    engine.set_data(batches_of(made_up, 4));
    engine.train_batch();
    losses[static_cast<std::size_t>(rank)] = engine.train_batch()->loss;
  });
  PipelineEngine whole(small_model(2, 2), batches_of_12());
  whole.set_data(batches_of(made_up, 4));
  whole.train_batch();
  CHECK(losses == std::vector<double>(4, whole.train_batch()->loss));
}

}  // namespace engine_test
