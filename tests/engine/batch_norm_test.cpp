// Buffers that a forward changes: the running means of a batch norm.

#include <fmt/format.h>
#include <torch/nn.h>

#include <cstring>

#include "exec/support/synthetic_data.hpp"
#include "pipewright/engine/engine.hpp"
#include "pipewright/engine/module_layers.hpp"
#include "pipewright/exec/rank/serial.hpp"
#include "support/catch.hpp"

namespace batch_norm_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using test::SyntheticData;
namespace nn = torch::nn;

constexpr int microbatches = 4;  // in the batch
constexpr int first_norm = 1, second_norm = 3;

PipelineModule model(int pipe, int data, int checkpoint_interval) {
  const auto linear = [](const std::string& name, int in, int out) {
    return module_layer(name, [in, out] { return nn::Linear(in, out); });
  };
  const auto norm = [](const std::string& name) {
    return module_layer(name, [] { return nn::BatchNorm1d(8); });
  };
  return {
      {linear("a", 4, 8), norm("norm1"), linear("b", 8, 8), norm("norm2"), linear("c", 8, 2)},
      {.topology = plan::pipe_data_topology(pipe, data),
       .partition = std::string("uniform"),
       .loss = [](const Tensors& outputs,
                  const Tensors& targets) { return at::mse_loss(outputs.at(0), targets.at(0)); },
       .checkpoint_interval = checkpoint_interval}};
}

PipelineEngine engine_of(int pipe, int data, int checkpoint_interval, const std::string& schedule) {
  return {model(pipe, data, checkpoint_interval),
          {.train_batch_size = 3 * microbatches, .microbatch_size = 3, .schedule = schedule}};
}

const SyntheticData made_up;

/// The buffers of the serial training's norms, which are built in the order of layers.
class Serial {
 public:
  Serial(TrainingSetup setup, int count) {
    for (const int layer : {first_norm, second_norm}) {
      auto& build = setup.layers[static_cast<std::size_t>(layer)].build;
      build = [this, build] { return built_.emplace_back(build()); };
    }
    setup.data = &made_up;
    trainer_ = std::make_unique<SerialTrainer>(setup, count);
    REQUIRE(built_.size() == 2);
  }
  double step(int step) { return trainer_->step(step).loss; }
  std::vector<at::Tensor> buffers() const {
    std::vector<at::Tensor> all;
    for (const auto& layer : built_)
      for (const at::Tensor& buffer : layer->buffers())
        all.push_back(buffer);
    return all;
  }

 private:
  std::vector<std::shared_ptr<Layer>> built_;
  std::unique_ptr<SerialTrainer> trainer_;
};

/// Returns the buffers that are stored in a checkpoint.
std::vector<at::Tensor> buffers_of(PipelineEngine& engine) {
  std::vector<at::Tensor> all;
  for (const LayerState& layer : engine.executor().snapshot(0).layers)
    for (const NamedTensor& tensor : layer.parameters)
      if (tensor.name.starts_with("running_") || tensor.name == "num_batches_tracked")
        all.push_back(tensor.value);
  return all;
}

bool same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const at::Tensor& x, const at::Tensor& y) {
                      return x.sizes() == y.sizes() && x.dtype() == y.dtype() &&
                             std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
                    });
}

TEST_CASE("Running means are bit-identical to serial training, also in recomputed layers",
          "[exec]") {
  int cases = 0;
  for (const char* const schedule : {"gpipe", "1f1b", "zb-h1"})
    for (const int pipe : {1, 2, 3})
      for (const int checkpoint_interval : {0, 1, 2}) {
        CAPTURE(schedule, pipe, checkpoint_interval);
        ++cases;
        PipelineEngine engine = engine_of(pipe, 1, checkpoint_interval, schedule);
        engine.set_data(batches_of(made_up, microbatches));
        Serial serial(engine.setup(), microbatches);
        for (int step = 0; step < 3; ++step)
          CHECK(engine.train_batch()->loss == serial.step(step));
        const auto buffers = buffers_of(engine);
        REQUIRE(buffers.size() == 6);
        CHECK(same_bits(buffers, serial.buffers()));
        CHECK(buffers.back().item<std::int64_t>() == 3 * microbatches);
      }
  CHECK(cases == 27);
}

TEST_CASE(
    "Each of several pipelines has its own running means, and a checkpoint stores the first one's",
    "[exec]") {
  PipelineEngine engine = engine_of(2, /*data=*/2, 0, "1f1b");
  engine.set_data(batches_of(made_up, microbatches));
  Serial first_half(engine.setup(), microbatches / 2);
  engine.train_batch();
  first_half.step(0);
  CHECK(same_bits(buffers_of(engine), first_half.buffers()));
}

}  // namespace batch_norm_test
