// The example of docs/model.md, which a test compares with this source.

// example
#include <torch/nn.h>

#include "pipewright/engine/engine.hpp"
#include "pipewright/engine/module_layers.hpp"
#include "pipewright/engine/skips.hpp"

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
namespace nn = torch::nn;

std::vector<LayerSpec> language_model() {
  const auto table = [] { return nn::Embedding(/*tokens=*/32, /*features=*/16); };
  const auto block = [] {
    return nn::Sequential(nn::Linear(16, 64), nn::GELU(), nn::Linear(64, 16));
  };
  const auto head = [](nn::Embedding& embedding, const at::Tensor& x) {
    return at::matmul(x, embedding->weight.t());
  };
  const auto add = [](const at::Tensor& x, const at::Tensor& skip) { return x + skip; };
  return with_skips({
      TiedLayerSpec{"table", "weight", module_layer("embedding", table)},
      PushSkip{"residual"},
      module_layer("block1", block),
      random_layer(module_layer("dropout", [] { return nn::Dropout(0.1); })),
      PopSkip{"residual", add},
      module_layer("block2", block),
      function_layer("scale", [](const at::Tensor& x) { return x * 0.25; }),
      TiedLayerSpec{"table", "weight", module_layer("head", table, head)},
  });
}

/// Returns the losses of the steps, and last that of an evaluation.
std::vector<double> train(const Batch& all, int steps) {
  const PipelineModule model(
      language_model(),
      {.topology = plan::pipe_data_topology(/*pipe=*/2, /*data=*/1),
       .partition = std::vector<SplitPoint>{{"block2", SplitPoint::Side::Beginning}},
       .loss = cross_entropy,
       .base_seed = 1});
  PipelineEngine engine(model, {.train_batch_size = 8,
                                .microbatch_size = 2,
                                .schedule = "zb-h1",
                                .optimizer = {.learning_rate = 1e-2}});
  engine.set_data(RepeatingLoader([all] { return batches_of(all, /*size=*/2); }));

  std::vector<double> losses;
  for (int step = 0; step < steps; ++step)
    losses.push_back(engine.train_batch()->loss);
  BatchSource test_data = batches_of(all, /*size=*/4);
  losses.push_back(*engine.eval_batch(test_data, {.microbatches = 2})->loss);
  return losses;
}
// end of example

#include "exec/support/example_text.hpp"
#include "support/catch.hpp"

namespace model_example_test {

using pipewright::test::between;
using pipewright::test::text_of;

TEST_CASE("The example of docs/model.md equals this one", "[exec]") {
  const std::string here = between(text_of("/tests/engine/model_example_test.cpp"),
                                   "\n// example\n", "// end of example");
  REQUIRE(here.size() > 1000);
  CHECK(between(text_of("/docs/model.md"), "```cpp\n", "```") == here);
}

TEST_CASE("The example of docs/model.md learns to repeat its input", "[exec]") {
  const at::Tensor tokens = (at::arange(96) * 7 % 32).view({8, 12});
  const auto losses = train({{tokens}, {tokens}}, 30);
  CHECK(losses.front() > 3);
  CHECK(losses.back() < losses.front() / 2);
}

}  // namespace model_example_test
