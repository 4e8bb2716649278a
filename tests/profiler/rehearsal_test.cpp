// A rank's compute without a pipeline.

#include "pipewright/profiler/sections/rehearsal.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "exec/support/equals_serial.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "profiler/support/small_model.hpp"
#include "support/make_schedule.hpp"

namespace rehearsal_test {

using namespace pipewright;
using namespace pipewright::profiler;
using Kind = plan::InstructionKind;

struct ThreeLayers {
  test::Fixed data{at::arange(16, at::kFloat).view({2, 8}) / 16};
  exec::TrainingSetup setup = test::setup_of(
      {test::linear("a", 8, 6), test::linear("b", 6, 5), test::linear("c", 5, 4)}, data);
};

/// Makes a script of one rank that holds all stages between `boundaries`.
RankProgram on_one_rank(std::vector<plan::Instruction> script, std::vector<int> boundaries) {
  RankProgram played;
  played.partition.boundaries = std::move(boundaries);
  played.program.placement =
      plan::one_route(std::vector<int>(static_cast<std::size_t>(stage_count(played.partition))));
  for (const plan::Instruction& i : script)
    played.program.microbatches = std::max(played.program.microbatches, i.microbatch + 1);
  played.gradient_groups.resize(static_cast<std::size_t>(played.program.microbatches));
  played.program.ranks = {std::move(script)};
  return played;
}

/// Compares the parameters after a training of the Program with those after rehearsals of each
/// rank, for `steps` repetitions of one step.
void check_trains_as_executed(const plan::Program& program, const exec::TrainingSetup& setup,
                              int steps) {
  at::set_num_threads(1);  // as a rank
  const auto partition = test::small_partition(stage_count(program));
  exec::Executor executor(program, partition, setup);
  for (int step = 0; step < steps; ++step)
    executor.step(0);
  RankProgram played{program, partition, exec::gradient_groups(program, setup, 1)};
  const auto borders = borders_of(LayerBench(setup), partition);
  std::vector<at::Tensor> rehearsed;
  for (int rank = 0; rank < static_cast<int>(program.ranks.size()); ++rank) {
    const LayerBench bench(setup);
    played.rank.rank = rank;
    Rehearsal rehearsal(bench, played, borders);
    for (int step = 0; step < steps; ++step)
      rehearsal.play(nullptr);
    for (const at::Tensor& parameter : rehearsal.stage(rank).optimizer().parameters())
      rehearsed.push_back(parameter);
  }
  const auto trained = executor.parameters();
  REQUIRE(rehearsed.size() == trained.size());
  for (std::size_t p = 0; p < trained.size(); ++p)
    CHECK(test::same_bits(rehearsed[p], trained[p]));
}

TEST_CASE("A rehearsal trains with the bits of the executor: whole and split backwards",
          "[profiler][rehearsal]") {
  auto setup = test::small_setup();
  for (const char* const schedule : {"1f1b", "zb-h1"})
    for (const int groups : {1, 2}) {
      CAPTURE(schedule, groups);
      setup.gradient_groups = groups;
      check_trains_as_executed(plan::lower(test::make(schedule, 1, 4)), setup, 3);
    }
}

TEST_CASE("A rehearsal trains with the bits of the executor: full and selective recomputation",
          "[profiler][rehearsal]") {
  const auto setup = test::small_setup();
  for (const char* const schedule : {"1f1b", "zb-h1"})
    for (const int layers : {1, 2, 4, 6}) {
      CAPTURE(schedule, layers);
      const auto program =
          plan::lower(test::make(schedule, 1, 2),
                      {.recompute = plan::RecomputeMode::Full, .recompute_layers = layers});
      REQUIRE(std::ranges::count(program.ranks[0], Kind::Recompute, &plan::Instruction::kind) == 2);
      check_trains_as_executed(program, setup, 2);
    }
  check_trains_as_executed(
      plan::lower(test::make("1f1b", 1, 2), {.recompute = plan::RecomputeMode::Selective}), setup,
      2);
}

TEST_CASE("A rehearsal trains with the bits of the executor: stashed weights (PipeDream)",
          "[profiler][rehearsal]") {
  auto program = plan::lower(test::make("pipedream", 1, 2), {.step_every = 1});
  // The second forward uses the weights before the first step.
  program.ranks[0] = {{Kind::Load, 0, 0, 0},     {Kind::Forward, 0, 0, 0},
                      {Kind::Load, 0, 1, 1},     {Kind::Forward, 0, 1, 1},
                      {Kind::Backward, 0, 0, 0}, {Kind::OptimizerStep, 0},
                      {Kind::Backward, 0, 1, 1}, {Kind::OptimizerStep, 0}};
  check_trains_as_executed(program, test::small_setup(), 2);
}

TEST_CASE("A rehearsal trains with the bits of the executor: 16 bits and the model's own loss",
          "[profiler][rehearsal]") {
  auto setup = test::small_setup();
  setup.precision = at::kBFloat16;
  check_trains_as_executed(plan::lower(test::make("1f1b", 1, 2)), setup, 2);
}

TEST_CASE(
    "Each rank's rehearsal has the bits of its stage in a pipeline, given its boundary tensors",
    "[profiler][rehearsal]") {
  for (const char* const schedule : {"1f1b", "zb-h1"})
    for (const int ranks : {2, 3})
      check_trains_as_executed(plan::lower(test::make(schedule, ranks, 1)), test::small_setup(), 1);
}

TEST_CASE("Training and measurement call a layer equally often under recomputation",
          "[profiler][rehearsal]") {
  int calls = 0;
  const test::Fixed data{at::ones({2, 4})};
  const auto setup =
      test::setup_of({test::linear("a", 4, 4), engine::function_layer("counts",
                                                                      [&](const at::Tensor& x) {
                                                                        ++calls;
                                                                        return x * 2;
                                                                      })},
                     data);
  const auto program =
      plan::lower(test::make("1f1b", 1, 3), {.recompute = plan::RecomputeMode::Full});
  const plan::Partition whole{{0, 2}};
  exec::Executor(program, whole, setup).step(0);
  const int trained = std::exchange(calls, 0);
  CHECK(trained == 6);  // three microbatches, each recomputed
  const LayerBench bench(setup);
  Rehearsal(bench, {program, whole, {0, 0, 0}}, std::vector<StageBoundaries>(1)).play(nullptr);
  CHECK(calls == trained);
}

TEST_CASE("Recomputation of a layer is timed as a forward for every group size",
          "[profiler][rehearsal]") {
  const ThreeLayers three;
  const LayerBench bench(three.setup);
  for (const int layers : {0, 1, 2})
    for (const bool halves : {false, true}) {
      std::vector<plan::Instruction> script{
          {Kind::Load, 0, 0}, {Kind::Forward, 0, 0}, {Kind::Recompute, 0, 0}};
      if (halves)
        script.insert(script.end(), {{Kind::InputGradient, 0, 0}, {Kind::WeightGradient, 0, 0}});
      else
        script.push_back({Kind::Backward, 0, 0});
      RankProgram played = on_one_rank(script, {0, 3});
      played.program.recompute_layers = layers;
      Rehearsal rehearsal(bench, played, std::vector<StageBoundaries>(1));
      std::vector<LayerSamples> samples;
      rehearsal.play(&samples);
      REQUIRE(rehearsal.seconds().size() == script.size());
      for (const double seconds : rehearsal.seconds())
        CHECK(seconds > 0);
      REQUIRE(samples.size() == 4);
      for (const LayerSamples& layer : samples)
        CHECK(layer.forward.size() == 2);
    }
}

TEST_CASE("A forward whose microbatch is recomputed keeps the input of each recomputed group",
          "[profiler][rehearsal]") {
  const ThreeLayers three;
  LayerBench bench(three.setup);
  const exec::ChargeTo charge(bench.account());
  const auto highest = [&](int layers, bool recomputes) {
    std::vector<plan::Instruction> script;
    for (int m = 0; m < 20; ++m)
      script.push_back({Kind::Load, 0, m});
    for (int m = 0; m < 20; ++m)
      script.push_back({Kind::Forward, 0, m});
    for (int m = 0; m < 20; ++m) {
      if (recomputes)
        script.push_back({Kind::Recompute, 0, m});
      script.push_back({Kind::Backward, 0, m});
    }
    RankProgram played = on_one_rank(script, {0, 3});
    played.program.recompute_layers = layers;
    Rehearsal rehearsal(bench, played, std::vector<StageBoundaries>(1));
    bench.account().reset_peak();
    const plan::Bytes before = bench.account().held();
    rehearsal.play(nullptr);
    return bench.account().peak() - before;
  };
  const plan::Bytes all = highest(0, false);
  CHECK(highest(0, true) < highest(1, true));
  CHECK(highest(1, true) < all);
}

class TellsSelective final : public exec::Layer {
 public:
  explicit TellsSelective(std::vector<bool>& told) : told_(told) {}
  at::Tensor forward(const at::Tensor& input, const exec::CallContext& context) override {
    told_.push_back(context.selective_recompute);
    return input * 2;
  }

 private:
  std::vector<bool>& told_;
};

TEST_CASE("Layers learn whether selective recomputation is on", "[profiler][rehearsal]") {
  std::vector<bool> told;
  const exec::LayerSpec spec{"tells", [&] { return std::make_shared<TellsSelective>(told); }};
  const test::Fixed data{at::ones({2, 4})};
  const auto setup = test::setup_of({test::linear("a", 4, 4), spec}, data);
  const LayerBench bench(setup);
  for (const bool selective : {false, true}) {
    told.clear();
    RankProgram played =
        on_one_rank({{Kind::Load, 0, 0}, {Kind::Forward, 0, 0}, {Kind::Backward, 0, 0}}, {0, 2});
    played.program.selective_recompute = selective;
    Rehearsal(bench, played, std::vector<StageBoundaries>(1)).play(nullptr);
    CHECK(told == std::vector{selective});
  }
}

TEST_CASE("Every action of a rank and every layer of its stages are timed",
          "[profiler][rehearsal]") {
  const ThreeLayers three;
  const LayerBench bench(three.setup);
  const auto borders = borders_of(bench, {{0, 1, 3}});
  REQUIRE(borders.size() == 2);
  CHECK(borders[0].inputs.empty());
  CHECK(borders[0].gradients.at(0).sizes() == borders[1].inputs.at(0).sizes());
  CHECK(borders[1].gradients.empty());
  RankProgram played;
  played.partition.boundaries = {0, 1, 3};
  played.program.microbatches = 2;
  played.program.placement = plan::one_route({0, 1});
  played.program.ranks = {{},
                          {{Kind::ReceiveActivation, 1, 0},
                           {Kind::Forward, 1, 0},
                           {Kind::Forward, 1, 1},
                           {Kind::Backward, 1, 0},
                           {Kind::InputGradient, 1, 1},
                           {Kind::SendGradient, 1, 1},
                           {Kind::WeightGradient, 1, 1},
                           {Kind::OptimizerStep, 1}}};
  played.gradient_groups = {0, 0};
  played.rank.rank = 1;
  Rehearsal rehearsal(bench, played, borders);
  std::vector<LayerSamples> samples;
  rehearsal.play(&samples);
  rehearsal.play(&samples);
  const std::vector<double>& seconds = rehearsal.seconds();
  REQUIRE(seconds.size() == 8);
  for (const std::size_t at : {0, 5})
    CHECK(seconds[at] == 0);
  for (const std::size_t at : {1, 2, 3, 4, 6, 7})
    CHECK(seconds[at] > 0);
  REQUIRE(samples.size() == 4);
  CHECK(samples[0].forward.empty());
  for (const std::size_t layer : {1, 2, 3}) {
    CHECK(samples[layer].forward.size() == 4);
    CHECK(samples[layer].backward.size() == 2);
    CHECK(samples[layer].input_gradient.size() == 2);
    CHECK(samples[layer].weight_gradient.size() == 2);
  }
  CHECK(samples[1].optimizer_step.size() == 2);
}

TEST_CASE("Typical times: the halves of a backward less their splitting overhead are the whole",
          "[profiler][rehearsal]") {
  LayerSamples samples;
  samples.forward = {1, 1, 4};
  samples.backward = {4};
  samples.input_gradient = {3};
  samples.weight_gradient = {2};
  plan::LayerTimes times = times_of(samples);
  CHECK(times.forward.value == 2);
  CHECK(times.input_gradient.value == 3);
  CHECK(times.weight_gradient.value == 2);
  CHECK(times.splitting.value == 1);

  samples.weight_gradient = {0.5};  // noise: together faster than in one go
  times = times_of(samples);
  CHECK(times.weight_gradient.value == 1);
  CHECK(times.splitting.value == 0);

  samples.input_gradient = {5};
  times = times_of(samples);
  CHECK(times.input_gradient.value - times.splitting.value + times.weight_gradient.value == 4);

  // Sampled in one go only: the halves keep their proportion.
  samples.input_gradient = samples.weight_gradient = {};
  times = times_of(samples, {.forward = {},
                             .input_gradient = {6},
                             .weight_gradient = {4},
                             .splitting = {2},
                             .optimizer_step = {}});
  CHECK(times.input_gradient.value == 3);
  CHECK(times.weight_gradient.value == 2);
  CHECK(times.splitting.value == 1);
}

TEST_CASE("Cores work together or one alone, and rethrow exceptions", "[profiler][rehearsal]") {
  std::atomic<int> prepared{0}, ended{0};
  {
    Cores cores(3, [&](int) {
      ++prepared;
      return std::shared_ptr<void>(nullptr, [&](void*) { ++ended; });
    });
    CHECK(cores.count() == 3);
    std::vector<int> turns(3);
    cores.together([&](int core) { ++turns[static_cast<std::size_t>(core)]; });
    cores.alone(1, [&] { turns[1] += 10; });
    CHECK(turns == std::vector<int>{1, 11, 1});
    CHECK_THROWS_WITH(cores.together([](int core) {
      if (core == 2)
        throw std::runtime_error("core 2");
    }),
                      "core 2");
    cores.together([&](int core) { ++turns[static_cast<std::size_t>(core)]; });
    CHECK(turns == std::vector<int>{2, 12, 2});
  }
  CHECK(prepared == 3);
  CHECK(ended == 3);
}

}  // namespace rehearsal_test
