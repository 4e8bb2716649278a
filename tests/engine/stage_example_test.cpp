// The second example of docs/model.md, which a test compares with this source.

// example
#include <algorithm>
#include <thread>

#include "pipewright/engine/pipeline_stage.hpp"
#include "pipewright/exec/transport/in_process_transport.hpp"

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;

/// A step of 1F1B on one rank, of these microbatches.
StepResult step_by_hand(PipelineStage& stage, int step, const std::vector<Batch>& batches) {
  const int count = static_cast<int>(batches.size());
  const int warm_up = std::min(stage.count() - stage.index() - 1, count);
  const auto forward = [&](int m) {
    stage.load(m, batches[static_cast<std::size_t>(m)]);  // the first stage's inputs, and targets
    stage.receive_inputs(m);                              // not on the first stage
    stage.forward(m);
    stage.send_outputs(m);  // not on the last stage
  };
  const auto backward = [&](int m) {
    stage.receive_gradients(m);  // not on the last stage
    stage.backward(m);
    stage.send_gradients(m);  // not on the first stage
  };
  stage.begin(step);
  for (int m = 0; m < warm_up; ++m)
    forward(m);
  for (int m = warm_up; m < count; ++m) {
    forward(m);
    backward(m - warm_up);
  }
  for (int m = count - warm_up; m < count; ++m)
    backward(m);
  return stage.update();
}

/// Two ranks as threads of this process; between processes the transport is another one. Returns
/// the losses of the steps.
std::vector<double> train_by_hand(const PipelineModule& model, const std::vector<Batch>& batches,
                                  int steps) {
  const std::shared_ptr<Transport> transport = make_in_process_transport(/*ranks=*/2);
  std::vector<double> losses;
  const auto rank = [&](int index) {
    PipelineStage stage(model, index,
                        {.microbatches = static_cast<int>(batches.size()), .transport = transport});
    for (int step = 0; step < steps; ++step) {
      const StepResult result = step_by_hand(stage, step, batches);
      if (stage.is_last())
        losses.push_back(result.loss);
    }
  };
  std::thread other(rank, 1);
  rank(0);
  other.join();
  return losses;
}
// end of example

#include <torch/nn.h>

#include "exec/support/equals_serial.hpp"
#include "exec/support/example_text.hpp"
#include "exec/support/synthetic_data.hpp"
#include "pipewright/engine/engine.hpp"
#include "pipewright/engine/module_layers.hpp"
#include "support/catch.hpp"

namespace stage_example_test {

using pipewright::test::between;
using pipewright::test::text_of;

TEST_CASE("The example of a single stage in docs/model.md equals this one", "[exec]") {
  const std::string here = between(text_of("/tests/engine/stage_example_test.cpp"),
                                   "\n// example\n", "// end of example");
  REQUIRE(here.size() > 1000);
  const std::string section = between(text_of("/docs/model.md"), "\n## A single stage\n", "\n## ");
  CHECK(between(section, "```cpp\n", "```") == here);
}

TEST_CASE("The example of a single stage has the losses of the engine and of serial training",
          "[exec]") {
  const auto linear = [](int in, int out) {
    return [in, out] { return torch::nn::Linear(in, out); };
  };
  const PipelineModule model({module_layer("a", linear(4, 8)), module_layer("b", linear(8, 8)),
                              module_layer("c", linear(8, 2))},
                             {.topology = plan::pipe_data_topology(2, 1),
                              .loss = [](const Tensors& outputs, const Tensors& targets) {
                                return at::mse_loss(outputs.at(0), targets.at(0));
                              }});
  const test::SyntheticData data;
  constexpr int microbatches = 4, steps = 3;
  std::vector<Batch> batches;
  for (int m = 0; m < microbatches; ++m)
    batches.push_back({data.inputs(0, m), data.targets(0, m)});
  const auto losses = train_by_hand(model, batches, steps);

  PipelineEngine engine(model, {.train_batch_size = 3 * microbatches, .microbatch_size = 3});
  engine.set_data([&, next = 0]() mutable {
    return std::optional(batches[static_cast<std::size_t>(next++ % microbatches)]);
  });
  const auto same_each_step = dataset_of(
      [&](int, int microbatch) { return batches[static_cast<std::size_t>(microbatch)]; });
  auto setup = engine.setup();
  setup.data = &*same_each_step;
  SerialTrainer serial(setup, microbatches);
  REQUIRE(losses.size() == steps);
  for (int step = 0; step < steps; ++step) {
    const double loss = losses[static_cast<std::size_t>(step)];
    CHECK(test::same_bits(loss, serial.step(step).loss));
    CHECK(test::same_bits(loss, engine.train_batch().value().loss));
  }
  CHECK(losses.back() < losses.front());
}

}  // namespace stage_example_test
