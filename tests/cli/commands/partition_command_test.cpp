#include <nlohmann/json.hpp>

#include "cli/support/program.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/model/model.hpp"
#include "support/catch.hpp"
#include "support/reference.hpp"

namespace partition_command_test {

using namespace pipewright;
using nlohmann::json;
using test::Result;
using test::run_program;
using test::TempFolder;

Result partition(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "partition");
  return run_program(arguments);
}

json answer(std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  const Result result = partition(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return json::parse(result.out);
}

/// Writes four layers of one second, as `pipewright profile` would write them.
std::string costs_file(const TempFolder& folder) {
  plan::LayerCosts costs;
  for (int layer = 0; layer < 4; ++layer) {
    plan::LayerCost cost;
    cost.name = "layer" + std::to_string(layer);
    cost.forward = {1};
    cost.output = {1'000'000};
    cost.activation = {1'000'000};
    costs.layers.push_back(cost);
  }
  costs.layers[1].output = {100'000'000};
  return folder.write("costs.json", plan::to_json(costs).dump()).string();
}

TEST_CASE("partition: weights on the command line", "[cli][partition]") {
  const auto result = partition({"--parts", "2", "--weights", "3,1,2"});
  CHECK(result.exit_code == 0);
  CHECK(result.out ==
        "[0, 1, 3]\npart 0: items 0 to 0, weight 3\npart 1: items 1 to 2, weight 3\n");
  CHECK(answer({"--parts", "2", "--weights", "3,1,2"})["sums"] == json({3.0, 3.0}));
}

TEST_CASE("partition: the worked example of AlexNet, by parameters", "[cli][partition]") {
  CHECK(answer({"--method", "parameters", "--parts", "2", "--model",
                test::alexnet_scenario})["boundaries"] == json({0, 19, 22}));
}

TEST_CASE("partition by the number of layers, and by their type", "[cli][partition]") {
  CHECK(answer({"--method", "uniform", "--parts", "4", "--weights", "1"})["boundaries"] ==
        json({0, 1, 1, 1, 1}));
  const auto blocks =
      answer({"--method", "type:transformer", "--parts", "2", "--model", test::gpt_scenario});
  CHECK(blocks["boundaries"] == json({0, 4, 8}));
  CHECK(blocks["sums"] == json({3.0, 3.0}));
  CHECK(blocks["layout"] == "Et*3|t*3L");
}

TEST_CASE("partition: constraints on stages and memory", "[cli][partition]") {
  const std::vector<std::string> ones{"--parts", "3", "--weights", "1,1,1,1,1,1"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), ones.begin(), ones.end());
    return answer(more)["boundaries"];
  };
  CHECK(with({"--first", "1"}) == json({0, 1, 4, 6}));
  CHECK(with({"--last", "1"}) == json({0, 3, 5, 6}));
  CHECK(with({"--fixed-boundaries", "1,2"}) == json({0, 1, 2, 6}));
  CHECK(with({"--together", "3-5"}) == json({0, 2, 3, 6}));
  CHECK(with({"--memory", "4,1,1,1,1,1", "--memory-cap", "4"}) == json({0, 1, 4, 6}));
}

TEST_CASE("partition rejects a memory cap that nothing fits, and names the layer",
          "[cli][partition]") {
  const auto result = partition({"--parts", "2", "--weights", "1,1,1", "--memory",
                                 "1000000000,3100000000,1", "--memory-cap", "2000000000"});
  CHECK(result.exit_code == 1);
  CHECK(result.err == "memory: layer 1 alone needs 3.100 GB, the cap is 2.000 GB\n");
}

TEST_CASE("partition: the shortest iteration avoids an expensive boundary", "[cli][partition]") {
  const TempFolder folder;
  const auto cluster = folder.write("cluster.json", R"({"format": "pipewright/cluster/1",
    "name": "two", "nodes": 1, "devices_per_node": 2, "device": {"name": "cpu"},
    "within_node": {"latency_s": 0, "bandwidth_per_s": 1e7},
    "between_nodes": {"latency_s": 0, "bandwidth_per_s": 1e7}})");
  const std::vector<std::string> base{"--parts", "2", "--costs", costs_file(folder)};
  CHECK(answer(base)["boundaries"] == json({0, 2, 4}));
  auto makespan = base;
  makespan.insert(makespan.end(), {"--objective", "makespan", "--schedule", "1f1b",
                                   "--microbatches", "4", "--cluster", cluster.string()});
  const auto found = answer(makespan);
  CHECK(found["boundaries"] != json({0, 2, 4}));
  CHECK(found["iteration_time_s"] < found["balanced_iteration_time_s"]);
  CHECK(found["exact"] == true);
}

TEST_CASE("partition: Megatron's layouts, and torchtitan's weights", "[cli][partition]") {
  const auto layout = answer({"--layout", "E,t|(tt|)*2L"});
  CHECK(layout["boundaries"] == json({0, 2, 4, 6, 7}));
  CHECK(layout["layout"] == "Et|(tt|)*2,L");
  CHECK(answer({"--layers", "14", "--input-weight", "1", "--output-weight", "1", "--parts",
                "4"})["layers_per_stage"] == json({3, 4, 4, 3}));
}

TEST_CASE("partition: a published profile on four machines", "[cli][partition][reference]") {
  const auto profile = test::reference_file("papers/profile_pipedream_vgg16.csv");
  const auto found =
      answer({"--profile", profile.string(), "--machines", "4", "--bandwidth", "1e9"});
  CHECK(found["slowest_stage_s"].get<double>() == Approx(0.175732624));
  CHECK(found["stages"].size() == 2);
  CHECK(found["stages"][0]["replicas"] == 3);
  CHECK(found["boundaries"] == json({0, 15, 40}));
}

TEST_CASE("partition: a model in addition to measured costs shows which layers are tied",
          "[cli][partition]") {
  const TempFolder folder;
  plan::Model model;
  model.name = "tied";
  model.layers.resize(4);
  for (plan::Layer& layer : model.layers)
    layer = {"l", "linear", 1, plan::Bytes{4}, 0, {1}, "float32", "", false};
  model.layers[1].tied_key = model.layers[3].tied_key = "table";
  const auto file = folder.write("model.json", plan::to_json(model).dump()).string();
  const auto costs = costs_file(folder);
  CHECK(answer({"--parts", "2", "--costs", costs, "--model", file,
                "--tied-together"})["boundaries"] == json({0, 1, 4}));
  CHECK(partition({"--parts", "2", "--costs", costs, "--model", test::gpt_scenario}).err ==
        "the costs are for 4 layers, but the model has 8\n");
}

TEST_CASE("partition rejects bad input with an error message", "[cli][partition]") {
  CHECK(partition({"--parts", "0", "--weights", "1"}).exit_code == 2);
  CHECK(partition({"--parts", "1", "--weights", "1,-2"}).exit_code == 2);
  const auto refusal = [&](const char* option, const char* value) {
    return partition({"--parts", "3", "--weights", "1,1,1", "--memory-cap", "2", option, value})
        .err;
  };
  CHECK(refusal("--memory", "1,-1,1") ==
        "--memory: layer 1 needs -1 bytes: it must be at least 0\n");
  CHECK(refusal("--chunks", "0") == "--chunks 0: at least 1 is needed\n");
  CHECK(refusal("--chunks", "2") ==
        "3 parts cannot be 2 on each rank: use a multiple of 2, or other --chunks\n");
  CHECK(partition({"--parts", "1"}).err.find("nothing to partition") == 0);
  CHECK(partition({"--parts", "1", "--method", "profil", "--weights", "1"})
            .err.find("did you mean \"profile\"?") != std::string::npos);
  CHECK(partition({"--parts", "1", "--weights", "1", "--together", "2"}).err ==
        "--together 2: write the first and the last layer, such as 3-5\n");
  CHECK(partition({"--layout", "Et|x"}).err.find("column 4") != std::string::npos);
  CHECK(partition({"--layout", "Et", "--first", "1"}).exit_code == 2);
}

}  // namespace partition_command_test
