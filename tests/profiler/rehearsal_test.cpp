// A rank's compute, played through without a pipeline.

#include "pipewright/profiler/rehearsal.hpp"

#include <ATen/ATen.h>

#include <atomic>

#include "pipewright/exec/training/layer.hpp"
#include "profiler/support/small_model.hpp"
#include "support/catch.hpp"

namespace rehearsal_test {

using namespace pipewright;
using namespace pipewright::profiler;
using Kind = plan::InstructionKind;

struct ThreeLayers {
  test::Fixed data{at::arange(16, at::kFloat).view({2, 8}) / 16};
  exec::TrainingSetup setup = test::setup_of(
      {test::linear("a", 8, 6), test::linear("b", 6, 5), test::linear("c", 5, 4)}, data);
};

std::vector<at::Tensor> gradients_of(const LayerBench& bench) {
  std::vector<at::Tensor> gradients;
  for (std::size_t layer = 0; layer < bench.loss(); ++layer)
    for (const at::Tensor& parameter : bench.parameters(layer)) {
      gradients.push_back(parameter.grad().clone());
      parameter.grad().zero_();
    }
  return gradients;
}

TEST_CASE(
    "stages played by themselves have the gradients of the whole model, in one go or in halves",
    "[profiler][rehearsal]") {
  const ThreeLayers three;
  const LayerBench bench(three.setup);
  const auto parts = stage_parts(bench, {0, 1, 3});
  const auto expected = gradients_of(bench);  // stage_parts went through the model once
  CHECK_FALSE(parts.at(0).input.defined());
  CHECK(parts.at(0).gradient.sizes() == parts.at(1).input.sizes());
  CHECK_FALSE(parts.at(1).gradient.defined());

  for (const bool halves : {false, true}) {
    std::vector<plan::Instruction> script;
    for (const int stage : {0, 1}) {
      if (stage == 0)
        script.push_back({Kind::Load, 0, 0});
      script.push_back({Kind::Forward, stage, 0});
      if (halves)
        script.insert(script.end(),
                      {{Kind::InputGradient, stage, 0}, {Kind::WeightGradient, stage, 0}});
      else
        script.push_back({Kind::Backward, stage, 0});
    }
    Rehearsal rehearsal(bench, parts, script);
    rehearsal.play(nullptr);
    const auto played = gradients_of(bench);
    REQUIRE(played.size() == expected.size());
    for (std::size_t g = 0; g < played.size(); ++g)
      CHECK(at::allclose(played[g], expected[g]));
  }
}

TEST_CASE("what runs again has the gradients of what does not, however many layers do so at a time",
          "[profiler][rehearsal]") {
  const ThreeLayers three;
  const LayerBench bench(three.setup);
  const auto parts = stage_parts(bench, {0, 3});
  const auto expected = gradients_of(bench);
  for (const int layers : {0, 1, 2})
    for (const bool halves : {false, true}) {
      std::vector<plan::Instruction> script{
          {Kind::Load, 0, 0}, {Kind::Forward, 0, 0}, {Kind::Recompute, 0, 0}};
      if (halves)
        script.insert(script.end(), {{Kind::InputGradient, 0, 0}, {Kind::WeightGradient, 0, 0}});
      else
        script.push_back({Kind::Backward, 0, 0});
      Rehearsal rehearsal(bench, parts, script, {.recompute_layers = layers});
      std::vector<LayerSamples> samples;
      rehearsal.play(&samples);
      for (const double seconds : rehearsal.seconds())
        CHECK(seconds > 0);
      for (const LayerSamples& layer : samples)
        CHECK(layer.forward.size() == 2);
      const auto played = gradients_of(bench);
      REQUIRE(played.size() == expected.size());
      for (std::size_t g = 0; g < played.size(); ++g)
        CHECK(at::allclose(played[g], expected[g]));
    }
}

TEST_CASE("a forward whose microbatch runs again keeps the input of each part that does",
          "[profiler][rehearsal]") {
  const ThreeLayers three;
  LayerBench bench(three.setup);
  const auto parts = stage_parts(bench, {0, 3});
  const exec::ChargeTo charge(bench.account());
  const auto highest = [&](int layers, bool recomputes) {
    std::vector<plan::Instruction> script{{Kind::Load, 0, 0}};
    for (int m = 0; m < 20; ++m)
      script.push_back({Kind::Forward, 0, m});
    if (recomputes)
      for (int m = 0; m < 20; ++m)
        script.insert(script.end(), {{Kind::Recompute, 0, m}, {Kind::Backward, 0, m}});
    else
      for (int m = 0; m < 20; ++m)
        script.push_back({Kind::Backward, 0, m});
    for (int m = 1; m < 20; ++m)
      script.insert(script.begin(), {Kind::Load, 0, m});
    Rehearsal rehearsal(bench, parts, script, {.recompute_layers = layers});
    bench.account().reset_peak();
    const plan::Bytes before = bench.account().held();
    rehearsal.play(nullptr);
    return bench.account().peak() - before;
  };
  const plan::Bytes all = highest(0, false);
  CHECK(highest(0, true) < highest(1, true));
  CHECK(highest(1, true) < all);
}

TEST_CASE("microbatches under way across a step keep their weights where nothing is flushed",
          "[profiler][rehearsal]") {
  const ThreeLayers three;
  const std::vector<plan::Instruction> script{{Kind::Load, 0, 0},     {Kind::Forward, 0, 0},
                                              {Kind::Load, 0, 1},     {Kind::Forward, 0, 1},
                                              {Kind::Backward, 0, 0}, {Kind::OptimizerStep, 0},
                                              {Kind::Backward, 0, 1}};
  for (const bool asynchronous : {false, true}) {
    CAPTURE(asynchronous);
    const LayerBench bench(three.setup);
    const auto parts = stage_parts(bench, {0, 3});
    const at::Tensor expected = gradients_of(bench).front();
    Rehearsal(bench, parts, script, {.asynchronous = asynchronous}).play(nullptr);
    // What the first layer is told depends on the weights behind it.
    CHECK(at::equal(gradients_of(bench).front(), expected) == asynchronous);
  }
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

TEST_CASE("layers are told whether they compute again selectively", "[profiler][rehearsal]") {
  std::vector<bool> told;
  const exec::LayerSpec spec{"tells", [&] { return std::make_shared<TellsSelective>(told); }};
  const test::Fixed data{at::ones({2, 4})};
  const auto setup = test::setup_of({test::linear("a", 4, 4), spec}, data);
  const LayerBench bench(setup);
  const auto parts = stage_parts(bench, {0, 2});
  for (const bool selective : {false, true}) {
    told.clear();
    Rehearsal(bench, parts, {{Kind::Load, 0, 0}, {Kind::Forward, 0, 0}, {Kind::Backward, 0, 0}},
              {.selective_recompute = selective})
        .play(nullptr);
    CHECK(told == std::vector{selective});
  }
}

TEST_CASE("every action of a rank is timed, and every layer of its stages",
          "[profiler][rehearsal]") {
  const ThreeLayers three;
  const auto parts = stage_parts(LayerBench(three.setup), {0, 1, 3});
  const LayerBench bench(three.setup, {}, [](int layer) { return layer > 0; });
  std::vector<LayerSamples> samples;
  Rehearsal rehearsal(bench, parts,
                      {{Kind::ReceiveActivation, 1, 0},
                       {Kind::Forward, 1, 0},
                       {Kind::Forward, 1, 1},
                       {Kind::Backward, 1, 0},
                       {Kind::InputGradient, 1, 1},
                       {Kind::SendGradient, 1, 1},
                       {Kind::WeightGradient, 1, 1},
                       {Kind::OptimizerStep, 1}});
  rehearsal.play(&samples);
  rehearsal.play(&samples);
  const std::vector<double>& seconds = rehearsal.seconds();
  REQUIRE(seconds.size() == 8);
  for (const std::size_t at : {0, 5})
    CHECK(seconds[at] == 0);
  for (const std::size_t at : {1, 2, 3, 4, 6})
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

TEST_CASE("typical times: the halves of a backward less their splitting are the whole",
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

  samples.weight_gradient = {0.5};  // together quicker than in one go: noise
  times = times_of(samples);
  CHECK(times.weight_gradient.value == 1);
  CHECK(times.splitting.value == 0);

  samples.input_gradient = {5};
  times = times_of(samples);
  CHECK(times.input_gradient.value - times.splitting.value + times.weight_gradient.value == 4);

  // Sampled in one go alone: the halves keep their shares.
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

TEST_CASE("cores work together or one alone, and pass on what goes wrong",
          "[profiler][rehearsal]") {
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
