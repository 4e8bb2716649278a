#include "pipewright/plan/scenario/scenario_cut.hpp"

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/known_transformers.hpp"
#include "pipewright/plan/model/transformer_layers.hpp"
#include "pipewright/plan/model/transformer_shape.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace scenario_cut_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

Scenario sample() {
  Scenario scenario;
  scenario.name = "cut";
  scenario.model = TransformerShape{.config = *find_transformer("mixtral-8x7b"), .sequence = 1024};
  scenario.data = {.kind = "tokens", .path = "/tokens.bin"};
  scenario.cluster.name = "c";
  scenario.cluster.nodes = 4;
  scenario.cluster.devices_per_node = 8;
  scenario.pipeline.schedule = "interleaved-1f1b";
  scenario.pipeline.chunks = 2;
  scenario.pipeline.partition = "uniform";
  scenario.pipeline.replicas = 2;
  scenario.pipeline.tensor = 2;
  scenario.pipeline.sequence_parallel = true;
  scenario.pipeline.context = 2;
  scenario.pipeline.expert = 4;
  scenario.training.zero = 3;
  scenario.training.fp32_gradients = true;
  scenario.training.precision = Precision::Mixed;
  return scenario;
}

Scenario read(const Json& json) {
  return scenario_from_json(JsonDocument::parse(json.dump(), "s.json"));
}

TEST_CASE("A scenario with all kinds of parallelism reads back as it was written",
          "[plan][scenario]") {
  const Scenario scenario = sample();
  CHECK(read(to_json(scenario)) == scenario);
  CHECK(cut_of(scenario) == Cut{.tensor = 2,
                                .sequence_parallel = true,
                                .context = 2,
                                .data = 2,
                                .expert = 4,
                                .pipeline = 2,
                                .chunks = 2,
                                .schedule = "interleaved-1f1b",
                                .microbatch = 4,
                                .zero = 3});
  CHECK(batch_of(scenario) == 8 * 4 * 2);
  CHECK(ranks_of_job(scenario.pipeline) == 16);
}

TEST_CASE("Each parallelism field can be set", "[plan][scenario]") {
  for (const char* field :
       {"pipeline.tensor=1", "pipeline.expert=2", "pipeline.context=1", "pipeline.replicas=8",
        "pipeline.sequence_parallel=false", "training.zero=2", "training.fp32_gradients=false",
        R"(pipeline.axes=["tensor", "pipe", "context", "data"])"}) {
    CAPTURE(field);
    Scenario before = sample();
    if (std::string(field) == "pipeline.tensor=1")
      before.pipeline.sequence_parallel = false;
    if (std::string(field) == "pipeline.context=1")
      before.pipeline.expert = 2;
    const Scenario after = changed(before, field);
    CHECK(after != before);
    CHECK(read(to_json(after)) == after);
  }
}

TEST_CASE("An impossible parallelism is rejected with a possible one", "[plan][scenario]") {
  const auto refusal = [](const char* field) {
    return error_of([&] { changed(sample(), field); });
  };
  CHECK(refusal("pipeline.expert=3")
            .find("/pipeline/expert: 3 ranks cannot divide the experts: 2 replicas times 2 "
                  "ranks along "
                  "context are not a multiple of it") != std::string::npos);
  CHECK(refusal("pipeline.tensor=1").find("/pipeline/sequence_parallel: ") != std::string::npos);
  CHECK(refusal("pipeline.tensor=0").find("/pipeline/tensor: ") != std::string::npos);
  CHECK(refusal("pipeline.tensor=3").find("a tensor size of 3 does not divide") !=
        std::string::npos);
  CHECK(refusal("pipeline.context=3").find("a context size of 3 does not divide a sequence") !=
        std::string::npos);
  CHECK(refusal("training.zero=4").find("/training/zero: ") != std::string::npos);
  CHECK(refusal(R"(pipeline.axes=["pipe", "data", "tensor", "tensor"])")
            .find("/pipeline/axes: the axes must be pipe, data, context, tensor, each once, but "
                  "are pipe, data, tensor, tensor") != std::string::npos);
  CHECK(refusal("model.sparse=[true]").find("/model/sparse: 1 flags are given for 32 layers") !=
        std::string::npos);
  CHECK(refusal("model.kv_heads=7").find("/model/kv_heads: ") != std::string::npos);
}

TEST_CASE("The placement of ranks follows from the order of the axes", "[plan][scenario]") {
  Pipeline pipeline = sample().pipeline;
  const StagePlaces near = stage_places(pipeline);
  CHECK(near.copies == 4);
  CHECK(near.shards == 2);
  CHECK(near.devices == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
  pipeline.axes = {"tensor", "pipe", "context", "data"};
  // Rank 0, replica 0 (data 0, context 0), then context 1, data 1. Its tensor-parallel ranks are
  // half the job apart.
  const StagePlaces far = stage_places(pipeline);
  CHECK(std::vector(far.devices.begin(), far.devices.begin() + 8) ==
        std::vector<int>{0, 8, 2, 10, 1, 9, 3, 11});

  Cluster cluster = sample().cluster;
  CHECK(shard_places(cluster, sample().pipeline).tensor ==
        GroupPlace{.devices = 2, .beside = 1, .spans = false});
  CHECK(shard_places(cluster, pipeline).tensor ==
        GroupPlace{.devices = 2, .beside = 8, .spans = true, .level = 1});
  CHECK(shard_places(cluster, sample().pipeline).expert ==
        GroupPlace{.devices = 4, .beside = 1, .spans = false});
}

TEST_CASE("With several kinds of nodes, a rank is as small and slow as its worst device",
          "[plan][scenario]") {
  Scenario scenario;
  scenario.pipeline.ranks = 2;
  scenario.pipeline.replicas = 2;
  scenario.cluster.nodes = 4;
  CHECK(cluster_of_ranks(scenario) == scenario.cluster);
  scenario.cluster.mixture = {
      .kinds = {{.nodes = 1, .device = {.name = "large", .memory = {90}}},
                {.nodes = 3, .device = {.name = "small", .memory = {40}}, .speed = 0.5}}};
  CHECK(cluster_of_ranks(scenario).rank_memory == std::vector<double>{40, 40});
  scenario.cluster.mixture->kinds[0].nodes = 3;
  scenario.cluster.mixture->kinds[1].nodes = 1;
  CHECK(cluster_of_ranks(scenario).rank_memory == std::vector<double>{90, 40});
  CHECK(cluster_of_ranks(scenario).rank_speeds == std::vector{1, 0.5});
  CHECK_FALSE(cluster_of_ranks(scenario).mixture);
  scenario.cluster.rank_speeds = {3, 4};
  scenario.cluster.rank_memory = {10, 0};
  CHECK(cluster_of_ranks(scenario).rank_speeds == std::vector<double>{3, 2});
  CHECK(cluster_of_ranks(scenario).rank_memory == std::vector<double>{10, 0});
}

TEST_CASE("With a measured mixture, a rank has a part of the experts and exchanges their tokens",
          "[plan][scenario]") {
  Scenario scenario;
  TransformerShape shape;
  shape.config.layers = 2;
  shape.config.experts = 4;
  shape.config.experts_per_token = 2;
  shape.config.expert_feed_forward = 8;
  shape.config.set_mixture_behind(1);
  scenario.model = shape;
  scenario.pipeline.replicas = scenario.pipeline.expert = 2;
  LayerCosts costs;
  for (const TransformerLayer& layer : layers_of(training_of(shape, 1))) {
    LayerCost cost;
    cost.parameters = {4 * layer.parameters};
    cost.output = {1000};
    cost.forward = cost.optimizer_step = {1};
    costs.layers.push_back(cost);
  }
  const LayerCosts shared = costs_of_shards(scenario, costs);
  CHECK(shared.expert == 2);
  CHECK(shared.layers[1] == costs.layers[1]);  // dense
  const LayerCost& mixture = shared.layers[2];
  const std::int64_t experts = 4 * 4 * 2 * 64 * 8;  // bytes
  CHECK(mixture.expert_parameters == Bytes{experts / 2});
  CHECK(mixture.parameters == costs.layers[2].parameters - Bytes{experts / 2});
  CHECK(mixture.expert_all_to_alls.times == 2);
  CHECK(mixture.expert_all_to_alls.bytes == Bytes{1000});  // half of two experts per token
  CHECK(mixture.forward == costs.layers[2].forward);
  CHECK(mixture.optimizer_step < costs.layers[2].optimizer_step);
  CHECK(costs_of_shards(scenario, shared) == shared);
}

TEST_CASE("Without a machine in the cluster, tensor-parallel communication is timed by the links",
          "[plan][cluster]") {
  Cluster cluster;
  cluster.devices_per_node = 2;
  cluster.nodes = 4;
  cluster.within_node = {.latency = {1}, .bandwidth_per_s = 10};
  cluster.between_nodes = {.latency = {5}, .bandwidth_per_s = 2};
  LayerCost layer;
  layer.tensor_all_reduces = {.times = 3, .bytes = {100}};
  const GroupPlace node{.devices = 2}, nodes{.devices = 4, .beside = 1, .spans = true};
  // 2 (n - 1) steps of 1/n of the bytes each.
  CHECK(shard_time(layer, cluster, {.tensor = node}).value == Approx(3 * 2 * (1 + 5.0)));
  CHECK(shard_time(layer, cluster, {.tensor = nodes}).value == Approx(3 * 6 * (5 + 12.5)));
  layer.expert_all_to_alls = {.times = 2, .bytes = {40}};
  CHECK(shard_time(layer, cluster, {.tensor = node, .context = {}, .expert = nodes}).value ==
        Approx(3 * 2 * 6 + 2 * (20 + 3 * 5)));
  layer.expert_all_to_alls = {};

  LayerCosts costs;
  layer.forward = {7}, layer.input_gradient = {8}, layer.weight_gradient = {9};
  costs.layers = {layer};
  const LayerCost timed = with_shard_times(costs, cluster, {.tensor = node}).layers[0];
  CHECK(timed.forward.value == Approx(7 + 36));
  CHECK(timed.input_gradient.value == Approx(8 + 36));
  CHECK(timed.weight_gradient.value == 9);
  CHECK(timed.shards.value == Approx(36));
  CHECK(timed.backward_shards.value == Approx(36));
  costs.layers[0].tensor_all_reduces.backward_times = 1;
  const LayerCost uneven = with_shard_times(costs, cluster, {.tensor = node}).layers[0];
  CHECK(uneven.forward == timed.forward);
  CHECK(uneven.input_gradient.value == Approx(8 + 12));
  CHECK(uneven.backward_shards.value == Approx(12));
  Cluster measured = cluster;
  measured.within_node.tensor_parallel_latency = {0.5};
  measured.within_node.tensor_parallel_bandwidth_per_s = 100;
  CHECK(shard_time(costs.layers[0], measured, {.tensor = node}).value ==
        Approx(3 * 2 * (0.5 + 0.5)));
}

TEST_CASE("A head tied to the embedding is shared by the first and last stages",
          "[plan][scenario]") {
  Scenario scenario;
  TransformerShape shape;  // vocabulary of 256, width 64
  shape.config.layers = 2;
  shape.config.tied = true;
  scenario.model = shape;
  LayerCosts costs;
  for (const TransformerLayer& layer : layers_of(training_of(shape, 1)))
    costs.layers.emplace_back().parameters = {4 * layer.parameters};
  const LayerCosts tied = costs_of_shards(scenario, costs);
  CHECK(tied.layers.front().tied == Bytes{4 * 256 * 64});
  CHECK(tied.layers.back().tied == Bytes{4 * 256 * 64});
  CHECK(tied.layers[1].tied == Bytes{});
  scenario.pipeline.tensor = 2;
  CHECK(costs_of_shards(scenario, costs).layers.front().tied == Bytes{4 * 256 * 64 / 2});
}

}  // namespace scenario_cut_test
