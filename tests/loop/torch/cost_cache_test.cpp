// Tests the cache of measured layer costs.

#include "pipewright/loop_torch/cost_cache.hpp"

#include <algorithm>
#include <fstream>

#include "pipewright/loop_torch/measured_costs.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/gpt_model.hpp"
#include "support/catch.hpp"
#include "support/temp_folder.hpp"

namespace cost_cache_test {

using namespace pipewright;
using loop::CostCache;
using test::TempFolder;

const plan::LayerCost some_cost = [] {
  plan::LayerCost cost;
  cost.name = "block0";
  cost.forward = {0.25};
  cost.weight_gradient = {0.125};
  cost.contended.forward = {0.5};
  cost.parameters = {1000};
  cost.saves_input = true;
  cost.tensor_all_reduces = {.times = 2, .bytes = {64}, .backward_times = 1};
  return cost;
}();

std::filesystem::path only_file(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path());
  REQUIRE(files.size() == 1);
  return files.front();
}

TEST_CASE("A cached cost is found only for the same layer and training", "[loop][cache]") {
  const TempFolder folder;
  std::string said;
  const auto say = [&](const std::string& text) { said += text; };
  const plan::Json about{{"cpu", "one"}};
  CostCache(folder.path(), about, say).keep("block; Float [2]", some_cost);
  CostCache cache(folder.path(), about, say);
  const auto found = cache.find("block; Float [2]");
  REQUIRE(found.has_value());
  CHECK(found->cost == some_cost);
  CHECK(found->measured.size() == 10);
  CHECK_FALSE(cache.find("block; Float [3]").has_value());
  CHECK_FALSE(cache.find("").has_value());
  CHECK_FALSE(CostCache(folder.path(), {{"cpu", "two"}}, say).find("block; Float [2]").has_value());
  CHECK(said.empty());
}

TEST_CASE("An unusable cache entry is reported and measured again", "[loop][cache]") {
  const TempFolder folder;
  std::string said;
  CostCache cache(folder.path(), {{"cpu", "one"}}, [&](const std::string& text) { said = text; });
  cache.keep("block", some_cost);
  const auto file = only_file(folder.path());
  const auto text = plan::JsonDocument::read(file).root();
  const auto check_left_out = [&](const std::string& content, const std::string& why) {
    said.clear();
    std::ofstream(file) << content;
    CHECK_FALSE(cache.find("block").has_value());
    CHECK(said.find("ignoring a cached cost: " + file.string()) == 0);
    CHECK(said.find(why) != std::string::npos);
  };
  check_left_out("{", "JSON");
  check_left_out(text.dump().substr(0, 40), "");
  auto foreign = text;
  foreign["key"]["cpu"] = "two";
  check_left_out(foreign.dump(), "measured for another machine, training or version");
  foreign = text;
  foreign["format"] = "pipewright/cached-costs/2";
  check_left_out(foreign.dump(), "measured for another machine, training or version");
  foreign = text;
  foreign["costs"]["layers"][0]["forward_s"] = -1;
  check_left_out(foreign.dump(), "forward_s");
  cache.keep("block", some_cost);
  CHECK(cache.find("block").has_value());
}

TEST_CASE("A cache that cannot be written is reported once", "[loop][cache]") {
  const TempFolder folder;
  int times = 0;
  CostCache cache(folder.write("file", "") / "cache", {}, [&](const std::string& text) {
    ++times;
    CHECK(text.find("costs are not cached: ") == 0);
  });
  cache.keep("a", some_cost);
  cache.keep("b", some_cost);
  CHECK(times == 1);
}

plan::Scenario small_scenario(int blocks) {
  plan::Scenario scenario;
  scenario.name = "small";
  scenario.model = plan::GptShape{.blocks = blocks, .hidden = 16, .heads = 2, .sequence = 8};
  scenario.data = {"text", PIPEWRIGHT_SOURCE_DIR "/scenarios/gpt-text/text.txt"};
  scenario.cluster.devices_per_node = 2;
  scenario.pipeline.ranks = 2;
  scenario.profile = {0, 1, 1, 1e9};
  return scenario;
}

struct Measured {
  loop::MeasuredLayers layers;
  int passes = 0;
};

Measured measured(const plan::Scenario& scenario, const std::filesystem::path& cache,
                  bool fresh = false, plan::Seconds over = {}) {
  static const std::atomic<bool> never = false;
  Measured found;
  found.layers = loop::measure_layers(scenario, loop::Workload(scenario), never,
                                      {.over = over,
                                       .progress = [&](const auto&) { ++found.passes; },
                                       .cache = cache,
                                       .fresh = fresh});
  return found;
}

TEST_CASE("Measured layers are not measured again, even in a deeper model", "[loop][cache]") {
  const TempFolder folder;
  const auto first = measured(small_scenario(3), folder.path());
  CHECK(first.passes == 1);
  CHECK(first.layers.known.layers == 0);
  CHECK(in_words(first.layers).empty());
  const auto again = measured(small_scenario(5), folder.path());
  CHECK(again.passes == 0);
  CHECK(again.layers.known.layers == 7);
  REQUIRE(again.layers.costs.layers.size() == 7);
  for (std::size_t block = 1; block <= 5; ++block) {
    const plan::LayerCost& cost = again.layers.costs.layers[block];
    CHECK(cost.name == "block" + std::to_string(block - 1));
    plan::LayerCost expected = first.layers.alike.at(0).typical;
    expected.name = cost.name;
    CHECK(cost == expected);
  }
  CHECK(again.layers.costs.loss == first.layers.costs.loss);
  CHECK(again.layers.costs.input == first.layers.costs.input);
  CHECK(in_words(again.layers).find("7 of 7 layers use costs measured on 20") == 0);
  CHECK(in_words(again.layers).find(folder.path().string()) != std::string::npos);

  CHECK(measured(small_scenario(3), folder.path(), /*fresh=*/true).passes == 1);
  auto thorough = small_scenario(3);
  thorough.profile = {0, 4, 4, 0};
  CHECK(measured(thorough, folder.path()).passes == 4);
  CHECK(measured(thorough, folder.path()).passes == 0);
  CHECK(measured(small_scenario(3), {}).passes == 1);
  auto other = small_scenario(3);
  other.training.microbatch_size = 2;
  CHECK(measured(other, folder.path()).passes == 1);
  other = small_scenario(3);
  other.training.optimizer = plan::Optimizer::Sgd;
  CHECK(measured(other, folder.path()).passes == 1);
  other = small_scenario(3);
  other.training.precision = plan::Precision::Mixed;
  CHECK(measured(other, folder.path()).passes == 1);
}

TEST_CASE("Costs measured in too short a time are not cached", "[loop][cache]") {
  const TempFolder folder;
  auto scenario = small_scenario(3);
  scenario.profile.least_repeats = scenario.profile.most_repeats = 1'000'000;
  for (int time = 0; time < 2; ++time)
    CHECK(measured(scenario, folder.path(), /*fresh=*/false, {0.01}).passes > 0);
  CHECK(std::filesystem::is_empty(folder.path()));
}

}  // namespace cost_cache_test
