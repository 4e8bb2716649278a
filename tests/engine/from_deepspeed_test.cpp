#include <torch/nn.h>

#include "pipewright/engine/engine.hpp"
#include "pipewright/engine/member.hpp"
#include "pipewright/engine/module_layers.hpp"
#include "support/catch.hpp"

namespace from_deepspeed_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
namespace nn = torch::nn;

// class Net(PipelineModule): layers = [TiedLayerSpec('embed', Embedding, …), LayerSpec(Block, …),
// …]
std::vector<LayerSpec> layers() {
  const auto embedding = [] { return nn::Embedding(32, 16); };
  const auto block = [] {
    return nn::Sequential(nn::Linear(16, 64), nn::GELU(), nn::Linear(64, 16));
  };
  const auto head = [](nn::Embedding& table, const at::Tensor& x) {
    return at::matmul(x, table->weight.t());
  };
  return {TiedLayerSpec{"embed", "weight", module_layer("embedding", embedding)},
          module_layer("block0", block), module_layer("block1", block),
          TiedLayerSpec{"embed", "weight", module_layer("head", embedding, head)}};
}

// engine, *_ = deepspeed.initialize(model=net, config={…}); for _ in range(n):
// engine.train_batch(data_iter)
double train(const Member& member, BatchSource& data_iter, int steps) {
  const PipelineModule net(layers(), {.topology = plan::Topology({"pipe", "data"}, {2, 1}),
                                      .partition = std::string("type:block"),  // partition_method
                                      .loss = cross_entropy,                   // loss_fn
                                      .base_seed = 1234,
                                      .checkpoint_interval = 1});  // activation_checkpoint_interval
  PipelineEngine engine(net, {.train_batch_size = 8,  // of all pipelines, as in the config
                              .microbatch_size = 2,   // train_micro_batch_size_per_gpu
                              .optimizer = {.learning_rate = 1e-2},
                              .clip_norm = 1,  // gradient_clipping
                              .zero = 1,       // zero_optimization.stage
                              .execution = member.execution()});
  double loss = 0;
  for (int step = 0; step < steps; ++step)
    loss = engine.train_batch(data_iter).value().loss;
  engine.set_batch_function([](Batch own) { return own; });  // set_batch_fn
  engine.eval_batch(data_iter, {.microbatches = 2,           // num_micro_batches
                                .outputs = true,             // return_logits
                                .loss = true,                // compute_loss
                                .share_loss = true});        // bcast_loss
  return loss;
}

TEST_CASE("the page for those who come from DeepSpeed trains", "[exec]") {
  const at::Tensor tokens = at::arange(8 * 5).remainder(32).view({8, 5});
  BatchSource data = RepeatingLoader([tokens] {
    return batches_of(Batch{{tokens}, {(tokens + 1).remainder(32)}}, 2);
  });
  const Member alone;
  CHECK(train(alone, data, 12) < train(alone, data, 1));
}

}  // namespace from_deepspeed_test
