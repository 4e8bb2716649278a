// An engine whose ranks are processes that communicate over Gloo, compared with serial training.

#include <fmt/format.h>
#include <torch/nn.h>
#include <torch/optim/adagrad.h>

#include "exec/support/bits_in_words.hpp"
#include "exec/support/processes.hpp"
#include "exec/support/synthetic_data.hpp"
#include "pipewright/engine/engine.hpp"
#include "pipewright/engine/gradient_contract.hpp"
#include "pipewright/engine/module_layers.hpp"
#include "pipewright/exec/rank/serial.hpp"
#include "pipewright/exec/training/torch_optimizer.hpp"
#include "pipewright/exec/transport/gloo_transport.hpp"
#include "support/catch.hpp"

namespace engine_over_gloo_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using test::bits_of;
using test::line_of_weights;
using test::Ranks;
using test::say;
using test::SyntheticData;
namespace nn = torch::nn;

constexpr int microbatches = 4;  // in the batch
constexpr int steps = 3;

struct Case {
  int pipe = 1;
  int data = 1;
  std::string schedule = "1f1b";
  int zero = 0;
  bool own = false;  // custom optimizer and learning rate, modified gradients, a frozen layer
  int ranks() const { return pipe * data; }
};

const std::map<std::string, Case> cases{
    {"two-ranks", {.pipe = 2}},
    {"split-backward", {.pipe = 3, .schedule = "zb-h1"}},
    {"replicas", {.pipe = 2, .data = 2}},
    {"zero", {.pipe = 2, .data = 2, .zero = 1}},
    {"own", {.pipe = 2, .data = 2, .own = true}},
    {"own-zero", {.pipe = 2, .data = 2, .zero = 1, .own = true}}};

PipelineModule module_of(const Case& wanted) {
  const auto linear = [](const std::string& name, int in, int out) {
    return module_layer(name, [in, out] { return nn::Linear(in, out); });
  };
  const auto tanh = [](const at::Tensor& input) { return input.tanh(); };
  return {
      {linear("a", 4, 8), function_layer("t", tanh), linear("b", 8, 8), function_layer("u", tanh),
       linear("c", 8, 2)},
      {.topology = plan::pipe_data_topology(wanted.pipe, wanted.data),
       .partition = std::string("uniform"),
       .loss = [](const Tensors& outputs,
                  const Tensors& targets) { return at::mse_loss(outputs.at(0), targets.at(0)); },
       .frozen = wanted.own ? "^a\\." : ""}};
}

EngineOptions options_of(const Case& wanted) {
  EngineOptions options{.train_batch_size = 3 * microbatches,
                        .microbatch_size = 3,
                        .schedule = wanted.schedule,
                        .zero = wanted.zero};
  if (!wanted.own)
    return options;
  options.optimizer.own = torch_optimizer<torch::optim::Adagrad>(torch::optim::AdagradOptions());
  options.optimizer.rate_at = [](int step) { return 0.1 / (1 + step); };
  options.before_step = [](const StepGradients& shown) {
    for (const NamedGradient& gradient : shown.gradients)
      gradient.value.clamp_(-0.01, 0.01);
  };
  return options;
}

/// Each rank reports the loss of each step, that of an evaluation, and its stage's weights.
TEST_CASE("rank of an engine over Gloo", "[.]") {
  const auto place = test::rank_place();
  if (!place)
    return;
  try {
    Job job(place->environment, {.join_timeout = std::chrono::seconds(20)});
    const Case& wanted = cases.at(place->argument);
    const SyntheticData data;
    EngineOptions options = options_of(wanted);
    options.execution.transport = make_gloo_transport(job);
    options.execution.only_rank = job.rank();
    PipelineEngine engine(module_of(wanted), options);
    engine.set_data(batches_of(data, microbatches));
    for (int step = 0; step < steps; ++step)
      say("loss " + bits_of(engine.train_batch().value().loss));
    BatchSource other = batches_of(data, microbatches);
    say("evaluation " + bits_of(engine.eval_batch(other).value().loss.value()));
    say(line_of_weights(engine.executor().parameters()));
    if (!wanted.own)
      say(gradient_contract(module_of(wanted), options, batches_of(data, microbatches)).holds()
              ? "gradients hold"
              : "gradients do not hold");
  } catch (const std::exception& error) {
    say(error.what());
  }
}

/// Returns the expected reports of the ranks of each stage.
std::vector<std::string> expected_of(const Case& wanted) {
  const PipelineEngine engine(module_of(wanted), options_of(wanted));
  const SyntheticData data;
  auto setup = engine.setup();
  setup.data = &data;
  std::vector<int> groups;
  for (int m = 0; m < microbatches; ++m)
    groups.push_back(m * wanted.data / microbatches);
  SerialTrainer serial(setup, microbatches, groups);
  std::string losses;
  for (int step = 0; step < steps; ++step)
    losses += "loss " + bits_of(serial.step(step).loss) + "\n";
  losses += "evaluation " + bits_of(serial.evaluate(data, microbatches, 0).loss) + "\n";
  const auto weights = serial.parameters();
  std::vector<std::string> expected;
  auto next = weights.begin();
  for (const StageDescription& stage : engine.module().stages()) {
    std::vector<at::Tensor> own;
    for (int layer = stage.first_layer; layer < stage.end_layer; ++layer)
      for (std::size_t p = build_layer(setup, layer)->parameters().size(); p > 0; --p)
        own.push_back(*next++);
    expected.push_back(losses + line_of_weights(own) + "\n" +
                       (wanted.own ? "" : "gradients hold\n"));
  }
  CHECK(next == weights.end());
  return expected;
}

TEST_CASE("An engine over Gloo is bit-identical to serial training on every rank", "[exec]") {
  int ranks_seen = 0;
  for (const auto& [name, wanted] : cases) {
    CAPTURE(name);
    const auto expected = expected_of(wanted);
    REQUIRE(expected.size() == static_cast<std::size_t>(wanted.pipe));
    Ranks ranks(
        {.size = wanted.ranks(), .test_case = "rank of an engine over Gloo", .argument = name});
    for (int rank = 0; rank < wanted.ranks(); ++rank) {
      CHECK(ranks.said(rank) == expected[static_cast<std::size_t>(rank / wanted.data)]);
      CHECK(ranks.status(rank) == 0);
      ++ranks_seen;
    }
  }
  CHECK(ranks_seen == 21);
}

}  // namespace engine_over_gloo_test
