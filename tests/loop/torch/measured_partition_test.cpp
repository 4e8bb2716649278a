#include "pipewright/loop_torch/measured_partition.hpp"

#include <torch/nn.h>

#include "pipewright/engine/module_layers.hpp"
#include "support/catch.hpp"

namespace measured_partition_test {

using namespace pipewright;
namespace nn = torch::nn;

exec::LayerSpec product(const std::string& name, int in, int out, int times) {
  return engine::module_layer(
      name, [in, out] { return nn::Linear(in, out); },
      [times](nn::Linear& layer, const at::Tensor& input) {
        at::Tensor sum = layer->forward(input);
        for (int again = 1; again < times; ++again)
          sum = sum + layer->forward(input);
        return sum;
      });
}

TEST_CASE("A module is cut into stages of equal measured time", "[loop]") {
  // The last layer does eight times the work of the others with equally many parameters.
  const std::vector<exec::LayerSpec> layers{product("a", 96, 96, 2), product("b", 96, 96, 2),
                                            product("c", 96, 96, 2), product("d", 96, 96, 2),
                                            product("e", 96, 96, 16)};
  const exec::Loss loss = [](const exec::Tensors& outputs, const exec::Tensors& targets) {
    return at::mse_loss(outputs.at(0), targets.at(0));
  };
  const exec::Batch example{{torch::rand({64, 96})}, {torch::rand({64, 96})}};
  const auto boundaries = [&](const engine::PartitionBy& partition) {
    return engine::PipelineModule(
               layers,
               {.topology = plan::pipe_data_topology(2, 1), .partition = partition, .loss = loss})
        .boundaries();
  };
  CHECK(boundaries(std::string("parameters")) != std::vector<int>{0, 4, 5});
  CHECK(boundaries(loop::by_measured_cost({.loss = loss, .example = example})) ==
        std::vector<int>{0, 4, 5});
}

}  // namespace measured_partition_test
