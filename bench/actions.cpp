// Measures the executor's own cost: the time per action with layers that do almost nothing,
// compared with calling the same layers one after the other. Also compares a backward split into I
// and W with a full one. Both alternate step by step. Prints one JSON line.

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>

#include "pipewright/engine/models/gpt.hpp"
#include "pipewright/exec/rank/serial.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/generators.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/model/gpt_model.hpp"
#include "pipewright/plan/partitioners/balanced.hpp"
#include "pipewright/plan/statistics.hpp"

namespace {

using namespace pipewright;

constexpr int microbatches = 64;
constexpr int warm_up_steps = 2;

/// A layer that adds a number to a number.
class Tiny final : public exec::Layer {
 public:
  Tiny() : weight_(register_parameter("weight", at::zeros({1}))) {}
  at::Tensor forward(const at::Tensor& input, const exec::CallContext&) override {
    return input + weight_;
  }

 private:
  at::Tensor weight_;
};

class Numbers final : public exec::Dataset {
 public:
  explicit Numbers(at::Tensor input, at::Tensor target)
      : input_(std::move(input)), target_(std::move(target)) {}
  at::Tensor input(int, int) const override { return input_; }
  at::Tensor target(int, int) const override { return target_; }

 private:
  at::Tensor input_, target_;
};

template <class Work>
double seconds_of(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Returns the medians of two kinds of work that alternate.
template <class First, class Second>
std::pair<double, double> in_turns(int rounds, const First& first, const Second& second) {
  std::vector<double> firsts, seconds;
  for (int round = -warm_up_steps; round < rounds; ++round) {
    const double a = seconds_of(first), b = seconds_of(second);
    if (round < 0)
      continue;
    firsts.push_back(a);
    seconds.push_back(b);
  }
  return {plan::median(firsts), plan::median(seconds)};
}

int actions_of(const plan::Program& program) {
  std::size_t actions = 0;
  for (const auto& instructions : program.ranks)
    actions = std::max(actions, instructions.size());
  return static_cast<int>(actions);
}

/// Returns microseconds per instruction of the busiest rank: a step's time minus its share of what
/// the same calls take without an executor.
double overhead_us(int ranks, int rounds, bool on_gpu) {
  const auto devices = on_gpu ? exec::on_gpus(ranks) : std::vector<exec::RankDevice>();
  const Numbers data(at::zeros({1}), at::zeros({1}));
  exec::TrainingSetup setup;
  for (int layer = 0; layer < ranks; ++layer)
    setup.layers.push_back({fmt::format("tiny{}", layer), [] { return std::make_shared<Tiny>(); }});
  setup.loss = [](const exec::Tensors& outputs, const exec::Tensors&) {
    return outputs.front().sum();
  };
  setup.data = &data;
  const auto program = plan::lower(plan::make_1f1b(ranks, microbatches));
  exec::Executor executor(program, plan::Partition{plan::uniform_boundaries(ranks, ranks)}, setup,
                          {.devices = devices});
  exec::SerialTrainer serial(setup, microbatches, {},
                             on_gpu ? devices.front() : exec::RankDevice());
  const auto [pipelined, alone] = in_turns(
      rounds, [&] { executor.step(0); }, [&] { serial.step(0); });
  return 1e6 * (pipelined - alone / ranks) / actions_of(program);
}

/// Returns the time of I and W divided by that of B, on a GPT in one stage.
double split_over_full(int rounds, int hidden, bool on_gpu) {
  const auto devices = on_gpu ? exec::on_gpus(1) : std::vector<exec::RankDevice>();
  const plan::GptShape shape{
      .blocks = 4, .hidden = hidden, .heads = 4, .sequence = 128, .vocabulary = 256};
  const at::Tensor tokens = at::randint(256, {4, 128}, at::kLong);
  const Numbers data(tokens, tokens.roll(-1, /*dims=*/1));
  exec::TrainingSetup setup;
  setup.layers = engine::gpt_layers(shape);
  setup.loss = exec::cross_entropy;
  setup.data = &data;
  const auto partition = plan::Partition{{0, 6}};
  const auto backward_seconds = [&](const char* csv, double& seconds) {
    return std::make_unique<exec::Executor>(
        plan::lower(plan::parse_csv(csv, "schedule")), partition, setup,
        exec::ExecutorOptions{.observer =
                                  [&seconds](const exec::InstructionRecord& record) {
                                    using Kind = plan::InstructionKind;
                                    const Kind kind = record.instruction.kind;
                                    if (kind == Kind::Backward || kind == Kind::InputGradient ||
                                        kind == Kind::WeightGradient)
                                      seconds += (record.end - record.start).value;
                                  },
                              .devices = devices});
  };
  double full = 0, split = 0;
  const auto whole = backward_seconds("0F0,0B0,0F1,0B1,0F2,0B2,0F3,0B3\n", full);
  const auto halves = backward_seconds("0F0,0I0,0W0,0F1,0I1,0W1,0F2,0I2,0W2,0F3,0I3,0W3\n", split);
  std::vector<double> ratios;
  for (int round = -warm_up_steps; round < rounds; ++round) {
    full = split = 0;
    whole->step(0);
    halves->step(0);
    if (round >= 0)
      ratios.push_back(split / full);
  }
  return plan::median(ratios);
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 10;
  std::vector<int> hidden{256, 512};
  bool on_gpu = false;
  CLI::App program(
      "Measures the executor's cost per action, and a split backward relative to a full one.");
  program.add_option("--rounds", rounds, "Steps of each kind")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  program.add_option("--hidden", hidden, "Width of the GPT whose backward is split")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  program.add_flag("--gpu", on_gpu, "Use this machine's GPUs");
  CLI11_PARSE(program, argc, argv);
  try {
    if (on_gpu)
      exec::on_gpus(1);  // before LibTorch is used
    at::set_num_threads(1);
    plan::Json line{{"overhead_us_1_rank", overhead_us(1, rounds, on_gpu)},
                    {"overhead_us_2_ranks", overhead_us(2, rounds, on_gpu)}};
    for (const int width : hidden)
      line[fmt::format("split_over_full_hidden_{}", width)] =
          split_over_full(rounds, width, on_gpu);
    fmt::print("{}\n", line.dump());
    return 0;
  } catch (const plan::InputError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
