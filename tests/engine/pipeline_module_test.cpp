#include "pipewright/engine/pipeline_module.hpp"

#include <torch/nn.h>

#include "pipewright/engine/module_layers.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace pipeline_module_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
namespace nn = torch::nn;

LayerSpec linear(const std::string& name, int in, int out) {
  return module_layer(name,
                      [in, out] { return nn::Linear(nn::LinearOptions(in, out).bias(false)); });
}

LayerSpec relu(const std::string& name) {
  return function_layer(name, [](const at::Tensor& input) { return input.relu(); });
}

/// Layers with 8, 0, 64, 0 and 16 parameters.
std::vector<LayerSpec> five_layers() {
  return {linear("in", 1, 8), relu("relu1"), linear("wide", 8, 8), relu("relu2"),
          linear("out", 8, 2)};
}

PipelineOptions two_stages(PartitionBy partition) {
  return {.topology = plan::pipe_data_topology(2, 1),
          .partition = std::move(partition),
          .loss = cross_entropy};
}

std::vector<int> boundaries(PartitionBy partition) {
  return PipelineModule(five_layers(), two_stages(std::move(partition))).boundaries();
}

std::string refusal(const std::vector<LayerSpec>& layers, const PipelineOptions& options) {
  return test::error_of([&] { PipelineModule(layers, options); });
}

TEST_CASE("Layers are partitioned by count, by parameters, by name, or explicitly", "[exec]") {
  CHECK(boundaries(std::string("uniform")) == std::vector<int>{0, 3, 5});
  CHECK(boundaries(std::string("parameters")) == std::vector<int>{0, 4, 5});
  CHECK(boundaries(std::string("type:^(in|relu)")) == std::vector<int>{0, 3, 5});
  CHECK(boundaries(std::string("type:^torch::nn::Linear")) == std::vector<int>{0, 4, 5});
  CHECK(boundaries(std::string("type:linearimpl$|relu2")) == std::vector<int>{0, 3, 5});
  CHECK(boundaries(std::vector<int>{0, 4, 5}) == std::vector<int>{0, 4, 5});
  CHECK(boundaries(std::vector<SplitPoint>{{"in", SplitPoint::Side::End}}) ==
        std::vector<int>{0, 1, 5});
}

TEST_CASE("Parameters are counted one layer at a time", "[exec]") {
  int alive = 0, most = 0;
  struct Counted final : Layer {
    explicit Counted(int& count) : alive(count) { register_parameter("w", at::ones(++alive)); }
    ~Counted() override { --alive; }
    int& alive;
  };
  std::vector<LayerSpec> layers;
  for (const char* name : {"a", "b", "c"})
    layers.push_back({name, [&] {
                        auto layer = std::make_shared<Counted>(alive);
                        most = std::max(most, alive);
                        return layer;
                      }});
  CHECK(parameter_counts(layers) == std::vector<std::int64_t>{1, 1, 1});
  CHECK(most == 1);
  CHECK(alive == 0);
}

TEST_CASE("Frozen parameters do not count", "[exec]") {
  nn::Linear frozen(4, 4);
  frozen->weight.set_requires_grad(false);
  CHECK(parameter_counts({copied_layer("frozen", frozen)}) == std::vector<std::int64_t>{4});
}

TEST_CASE("Stages can be inspected", "[exec]") {
  const PipelineModule model(five_layers(), two_stages(std::vector<int>{0, 2, 5}));
  CHECK(model.stage_count() == 2);
  CHECK(model.pipeline_ranks() == 2);
  CHECK(model.replicas() == 1);
  const auto stages = model.stages();
  CHECK(stages[0].layers == std::vector<std::string>{"in", "relu1"});
  CHECK(stages[1].layers == std::vector<std::string>{"wide", "relu2", "out"});
  CHECK((stages[0].is_first && !stages[0].is_last));
  CHECK((stages[1].is_last && !stages[1].is_first));
}

TEST_CASE("Topology and stages per rank determine the number of stages", "[exec]") {
  auto options = two_stages(std::string("uniform"));
  options.topology = plan::pipe_data_topology(2, 3);
  options.stages_per_rank = 2;
  const PipelineModule model(five_layers(), options);
  CHECK(model.stage_count() == 4);
  CHECK(model.replicas() == 3);
  options.stages_per_rank = 3;
  CHECK(refusal(five_layers(), options) == "6 stages asked for, but the model has 5 layers");
  options.topology = plan::Topology({"tensor", "data", "pipe"}, {2, 3, 2});
  options.stages_per_rank = 2;
  const PipelineModule turned(five_layers(), options);
  CHECK(turned.stage_count() == 4);
  CHECK(turned.replicas() == 3);
  CHECK(turned.shards() == 2);
  options.topology = plan::pipe_data_model_topology(2, 1, 2);  // DeepSpeed's name for tensor
  CHECK(PipelineModule(five_layers(), options).shards() == 2);
  options.topology = plan::Topology({"pipe", "expert"}, {2, 2});
  CHECK(refusal(five_layers(), options) ==
        "topology axis \"expert\": a pipeline runs along pipe, data and tensor only");
}

TEST_CASE("Models that cannot form a pipeline are rejected", "[exec]") {
  const auto uniform = two_stages(std::string("uniform"));
  CHECK(refusal({}, uniform) == "the model has no layers");
  CHECK(refusal({relu("a"), relu("a")}, uniform) ==
        "two layers have the name \"a\": names must be unique");

  const auto by = [](PartitionBy partition) {
    return refusal(five_layers(), two_stages(std::move(partition)));
  };
  CHECK(by(std::string("uniformly")).find("did you mean \"uniform\"?") != std::string::npos);
  CHECK(by(std::string("profile")).find("needs measured costs") != std::string::npos);
  CHECK(by(std::string("type:conv")) ==
        "type:conv matches no layer (possible: in, torch::nn::LinearImpl, relu1, wide, relu2 or "
        "out)");
  CHECK(by(std::vector<int>{0, 3}) ==
        "the boundaries [0, 3] do not go from 0 to 5, the number of layers");
  CHECK(by(std::vector<int>{0, 3, 3, 5}) ==
        "the boundaries [0, 3, 3, 5] leave stage 1 without a layer");
  CHECK(by(std::vector<int>{0, 1, 3, 5}) ==
        "the boundaries [0, 1, 3, 5] make 3 stages, but the topology and stages_per_rank ask for "
        "2");
}

}  // namespace pipeline_module_test
