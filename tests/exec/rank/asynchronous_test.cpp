// Programs that step without a flush (PipeDream, Narayanan et al., SOSP 2019): a microbatch's
// backward uses the weights of its forward. Each stage multiplies by one weight, so that a short
// emulator can compute every number.

#include <fmt/format.h>

#include "exec/support/equals_serial.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/partitioners/balanced.hpp"

namespace asynchronous_test {

using namespace pipewright;
using namespace pipewright::exec;

constexpr double rate = 0.01;

class Times final : public Layer {
 public:
  explicit Times(double weight)
      : weight_(register_parameter("weight", at::full({1}, weight, at::kDouble))) {}
  at::Tensor forward(const at::Tensor& input, const CallContext&) override {
    return input * weight_;
  }

 private:
  at::Tensor weight_;
};

double first_weight(int stage) { return 1 + 0.25 * stage; }

/// A dataset in which microbatch m is the number m + 1.
class Counting final : public Dataset {
 public:
  at::Tensor input(int, int microbatch) const override {
    return at::full({1}, microbatch + 1, at::kDouble);
  }
  at::Tensor target(int, int) const override { return at::zeros({1}); }
};

/// Runs a Program on numbers; each action runs as soon as its inputs exist.
class Emulator {
 public:
  Emulator(const plan::Program& program, int step_every)
      : program_(program), step_every_(step_every) {
    for (int stage = 0; stage < plan::stage_count(program); ++stage)
      weights.push_back(first_weight(stage));
    gradients_.assign(weights.size(), 0.0);
  }

  void run() {
    for (Values* const values : {&inputs_, &outputs_, &used_, &output_gradients_})
      values->clear();
    std::vector<std::size_t> next(program_.ranks.size(), 0);
    for (bool moved = true; std::exchange(moved, false);)
      for (std::size_t rank = 0; rank < next.size(); ++rank)
        while (next[rank] < program_.ranks[rank].size() &&
               perform(program_.ranks[rank][next[rank]])) {
          ++next[rank];
          moved = true;
        }
    for (std::size_t rank = 0; rank < next.size(); ++rank)
      REQUIRE(next[rank] == program_.ranks[rank].size());
  }

  std::vector<double> weights;

 private:
  /// Returns false if an input does not exist yet.
  bool perform(const plan::Instruction& i) {
    const auto stage = static_cast<std::size_t>(i.stage);
    const std::pair key{i.stage, i.microbatch};
    const bool last = i.stage + 1 == plan::stage_count(program_);
    switch (i.kind) {
      case plan::InstructionKind::Forward: {
        if (i.stage > 0 && !outputs_.contains({i.stage - 1, i.microbatch}))
          return false;
        const double input =
            i.stage == 0 ? i.microbatch + 1 : outputs_.at({i.stage - 1, i.microbatch});
        inputs_[key] = input;
        used_[key] = weights[stage];
        outputs_[key] = input * weights[stage];
        return true;
      }
      case plan::InstructionKind::Backward: {
        if (!last && !output_gradients_.contains(key))
          return false;
        const double gradient = last ? 1.0 / step_every_ : output_gradients_.at(key);
        gradients_[stage] += gradient * inputs_.at(key);
        output_gradients_[{i.stage - 1, i.microbatch}] = gradient * used_.at(key);
        return true;
      }
      case plan::InstructionKind::OptimizerStep:
        weights[stage] -= rate * gradients_[stage];
        gradients_[stage] = 0;
        return true;
      default:
        return true;
    }
  }

  using Values = std::map<std::pair<int, int>, double>;
  const plan::Program& program_;
  int step_every_;
  std::vector<double> gradients_;
  Values inputs_, outputs_, used_, output_gradients_;
};

TEST_CASE("Without a flush, backwards use the weights of their forwards", "[exec]") {
  const Counting data;
  for (const std::string name : {"pipedream", "pipedream-2bw"})
    for (const int ranks : {1, 2, 4}) {
      INFO(fmt::format("{}, {} ranks", name, ranks));
      plan::ScheduleRequest request;
      request.name = name;
      request.ranks = ranks;
      request.microbatches = 8;
      const auto lowering = plan::lowering_of(request);
      const auto program = plan::lower(plan::make_schedule(request), lowering);
      TrainingSetup setup;
      for (int stage = 0; stage < ranks; ++stage)
        setup.layers.push_back({fmt::format("times{}", stage),
                                [stage] { return std::make_shared<Times>(first_weight(stage)); }});
      setup.loss = [](const Tensors& outputs, const Tensors&) { return outputs.front().sum(); };
      setup.data = &data;
      setup.optimizer.kind = plan::Optimizer::Sgd;
      setup.optimizer.weight_decay = 0;
      setup.optimizer.learning_rate = rate;
      Executor executor(program, plan::Partition{plan::uniform_boundaries(ranks, ranks)}, setup);
      Emulator emulator(program, lowering.step_every);
      for (int step = 0; step < 2; ++step) {
        executor.step(step);
        emulator.run();
        for (int stage = 0; stage < ranks; ++stage)
          CHECK(executor.parameters()[static_cast<std::size_t>(stage)].item<double>() ==
                Approx(emulator.weights[static_cast<std::size_t>(stage)]).epsilon(1e-12));
      }
    }
}

TEST_CASE("Features that need all stages at one version are rejected without a flush", "[exec]") {
  auto setup = test::small_setup();
  setup.clip_norm = 1;
  const auto program = plan::lower(plan::make_pipedream(2, 4), {.step_every = 1});
  CHECK(test::error_of([&] { Executor(program, test::small_partition(2), setup); }) ==
        "the program steps its optimizers without a flush, so gradients cannot be clipped or "
        "scaled over all stages");
}

}  // namespace asynchronous_test
