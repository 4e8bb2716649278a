#include "pipewright/engine/whole_model.hpp"

#include <torch/nn.h>

#include "exec/support/engine_equals_serial.hpp"
#include "pipewright/engine/describe_module.hpp"
#include "pipewright/engine/module_layers.hpp"

namespace whole_model_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using test::check_same_bits;
using test::SyntheticData;
namespace nn = torch::nn;

PipelineModule model(int pipe) {
  return {
      {module_layer("a", [] { return nn::Linear(4, 8); }),
       random_layer(module_layer("drop", [] { return nn::Dropout(0.5); })),
       frozen(module_layer("b", [] { return nn::Linear(8, 2); }), "bias")},
      {.topology = plan::pipe_data_topology(pipe, 1),
       .partition = std::string("uniform"),
       .loss = [](const Tensors& outputs,
                  const Tensors& targets) { return at::mse_loss(outputs.at(0), targets.at(0)); },
       .base_seed = 3}};
}

TEST_CASE("A whole model computes the same as its pipeline", "[exec]") {
  const SyntheticData data;
  PipelineEngine engine(model(2), test::four_microbatches());
  WholeModel whole(model(2));
  check_same_bits(whole.parameters(), engine.executor().parameters());
  BatchSource batch = batches_of(data, 4);
  const auto evaluation = engine.eval_batch(batch, {.outputs = true}).value();
  std::vector<at::Tensor> outputs;
  for (int m = 0; m < 4; ++m)
    outputs.push_back(whole.forward(data.inputs(0, m)).at(0));
  check_same_bits(evaluation.outputs, {at::cat(outputs)});
  CHECK(test::same_bits(whole.forward(data.inputs(0, 0).at(0)), outputs.front()));
  // In training, dropout depends on step and microbatch.
  const CallContext first{.step = 0, .microbatch = 0}, second{.step = 0, .microbatch = 1};
  const auto drawn = [&](const CallContext& context) {
    return whole.forward(data.inputs(0, 0), context).at(0);
  };
  CHECK(test::same_bits(drawn(first), drawn(first)));
  CHECK_FALSE(test::same_bits(drawn(first), drawn(second)));
  CHECK(drawn(first).requires_grad());
}

TEST_CASE("A module is described stage by stage", "[exec]") {
  CHECK(to_string(model(2)) ==
        "stage 0: layers 0 to 1, 40 parameters: a, drop\n"
        "stage 1: layers 2 to 2, 16 parameters: b\n");
}

}  // namespace whole_model_test
