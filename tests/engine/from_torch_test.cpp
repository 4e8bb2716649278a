#include <torch/nn.h>

#include "pipewright/engine/engine.hpp"
#include "pipewright/engine/member.hpp"
#include "pipewright/engine/module_layers.hpp"
#include "support/catch.hpp"

namespace from_torch_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
namespace nn = torch::nn;

// pipe = pipeline(Net(), mb_args=(x,), split_spec={"layer1": SplitPoint.BEGINNING})
PipelineModule pipeline() {
  const auto linear = [] { return nn::Linear(8, 8); };
  const auto masked = [](nn::Linear& module, const at::Tensor& x, const CallContext& context) {
    return module(x) * context.keyword("mask");  // a keyword argument, on any stage
  };
  const Loss loss = [](const Tensors& outputs, const Tensors& targets) {
    return at::mse_loss(outputs.at(0), targets.at(0));
  };
  return {{module_layer("layer0", linear),
           keyword_layer(module_layer("layer1", linear, masked), {"mask"})},
          {.topology = plan::pipe_data_topology(/*pipe=*/2, /*data=*/1),
           .partition = std::vector<SplitPoint>{{"layer1", SplitPoint::Side::Beginning}},
           .loss = loss}};
}

TEST_CASE("the page for those who come from torch trains", "[exec]") {
  const Member member(plan::pipe_data_topology(2, 1));  // init_process_group, device, mesh
  // schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=loss, scale_grads=True)
  PipelineEngine schedule(pipeline(), {.train_batch_size = 8,
                                       .microbatch_size = 2,
                                       .schedule = "1f1b",
                                       .loss = LossOf::Mean,  // scale_grads=False: LossOf::Sum
                                       .execution = member.execution()});
  const at::Tensor x = at::arange(64, at::kFloat).view({8, 8}).sin();
  const WholeBatch batch{.inputs = {x},
                         .targets = {x.cos()},
                         .keywords = {{"mask", at::full({8}, 0.5)}},
                         .input_chunks = {{.dimension = 0}},        // args_chunk_spec
                         .keyword_chunks = {{"mask", replicate}}};  // kwargs_chunk_spec
  // losses = []; output = schedule.step(x, target=y, losses=losses, mask=mask)
  const BatchStep first =
      schedule.step(batch, {.outputs = true, .merges = {concatenate(0)}}).value();
  CHECK(first.step.losses.size() == 4);
  CHECK(first.outputs.at(0).sizes() == x.sizes());
  // output = schedule.eval(x, target=y, losses=losses, mask=mask)
  CHECK(schedule.evaluate(batch, {.outputs = true})->loss < first.step.loss);
}

}  // namespace from_torch_test
