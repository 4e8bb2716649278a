#include "pipewright/sim/memory/memory_cap.hpp"

#include <map>

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/schedules/schedule.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "sim/support/equal_ranks.hpp"
#include "support/error_of.hpp"

namespace memory_cap_test {

using namespace pipewright::plan;
using namespace pipewright::sim;
using pipewright::test::error_of;
using pipewright::test::make;

/// Returns two stages of 20 MB standing memory, 5 MB of activations and 2 MB working memory of a
/// forward.
StepCosts two_stages() {
  StageCost cost;
  cost.forward = cost.input_gradient = cost.weight_gradient = {1};
  cost.parameters = cost.gradients = {5'000'000};
  cost.optimizer_state = {10'000'000};
  cost.activation = {5'000'000};
  cost.forward_peak = {7'000'000};
  StepCosts costs;
  costs.stages = {cost, cost};
  costs.cluster.devices_per_node = 2;
  return costs;
}

Cluster of_memory(Bytes cap) {
  Cluster cluster;
  cluster.device.memory = cap;
  return cluster;
}

std::optional<MemoryExcess> over(const StepCosts& costs, const Cluster& cluster) {
  const Structure structure(lower(make("gpipe", 2, 3)));
  Simulator simulator(structure);
  MemoryModel model(structure);
  const Times& times = simulator.run(costs);
  const MemoryCurves& curves = model.curves(costs, times);
  std::vector<Bytes> needs;
  for (const MemoryPeak& peak : curves.peaks)
    needs.push_back(peak.held);
  return over_cap(structure, model, curves, costs, times, cluster, needs);
}

Scenario scenario() {
  return scenario_from_json(JsonDocument::parse(R"({
    "format": "pipewright/scenario/1", "name": "small", "model": {"kind": "gpt"},
    "data": {"kind": "text", "path": "text.txt"},
    "cluster": {"name": "c", "nodes": 1, "devices_per_node": 4, "device": {"name": "cpu"},
      "within_node": {"latency_s": 0, "bandwidth_per_s": 1e12}},
    "pipeline": {"ranks": 2, "microbatches": 8, "schedule": "gpipe"},
    "training": {"steps": 1, "microbatch_size": 4}})",
                                                "s.json"));
}

bool offers(const Scenario& scenario, const std::string& change) {
  const auto changes = leaner_changes(scenario);
  return std::find(changes.begin(), changes.end(), change) != changes.end();
}

TEST_CASE("Too little memory is reported with rank, instant, action and the largest holders",
          "[sim][memory]") {
  // 20 MB are permanent; at 2 s, before any backward, the third forward adds 5 and 2 to 10.
  const auto full = over(two_stages(), of_memory({30'000'000}));
  REQUIRE(full);
  CHECK(to_string(*full) ==
        "rank 0 needs 37.00 MB at 0F2 (2.000 s), but its device has 30.00 MB: mostly "
        "optimizer state 10.00 MB, parameters 5.000 MB, gradients 5.000 MB");
}

TEST_CASE("A cap that is just met, or none, rejects nothing", "[sim][memory]") {
  CHECK_FALSE(over(two_stages(), of_memory({37'000'000})));
  CHECK(over(two_stages(), of_memory({36'999'999})));
  CHECK_FALSE(over(two_stages(), of_memory({})));
}

TEST_CASE("Each rank has its own limit: the rank furthest above its limit is named",
          "[sim][memory]") {
  Cluster cluster = of_memory({1});  // overridden by rank_memory
  const auto limits = [&](double first, double second) {
    cluster.rank_memory = {first, second};
    return over(two_stages(), cluster);
  };
  CHECK_FALSE(limits(37e6, 37e6));
  CHECK_FALSE(limits(0, 0));
  REQUIRE(limits(36e6, 30e6));
  CHECK(limits(36e6, 30e6)->rank == 1);
  CHECK(limits(36e6, 30e6)->cap == Bytes{30'000'000});
  CHECK(limits(30e6, 36e6)->rank == 0);
  CHECK(limits(0, 36e6)->rank == 1);
  const Program program = lower(make("gpipe", 2, 3));
  cluster.rank_memory = {20e6, 19e6};
  CHECK(error_of([&] {
          require_cap_above_standing(program, two_stages().stages, cluster);
        }).starts_with("rank 1 holds 20.00 MB before any activation"));
  CHECK(least_memory(cluster) == Bytes{19'000'000});
  CHECK_FALSE(limits_memory(with_unlimited_memory(cluster)));
}

TEST_CASE("A cap below the permanent memory is rejected without any simulation", "[sim][memory]") {
  const Program program = lower(make("gpipe", 2, 3));
  const auto costs = two_stages().stages;
  CHECK(error_of([&] { require_cap_above_standing(program, costs, of_memory({19'000'000})); }) ==
        "rank 0 holds 20.00 MB before any activation (parameters 5.000 MB, gradients 5.000 MB, "
        "optimizer state 10.00 MB), but its device has 19.00 MB");
  CHECK_NOTHROW(require_cap_above_standing(program, costs, of_memory({20'000'000})));
  CHECK_NOTHROW(require_cap_above_standing(program, costs, of_memory({})));
}

TEST_CASE("Of the changes that fit the fastest is named", "[sim][memory]") {
  const auto fastest_within = [](std::int64_t cap) {
    const std::map<std::string, Need> known{
        {"a=1", {{40}, {1}}}, {"b=1", {{30}, {3}}}, {"c=1", {{20}, {2}}}, {"d=1", {{10}, {4}}}};
    const auto evaluate = [&](const std::string& change) -> std::optional<Need> {
      const auto found = known.find(change);
      if (found == known.end())
        return {};
      Need need = found->second;
      need.fits = need.peak.value <= cap;
      return need;
    };
    return smallest_change({"impossible=1", "a=1", "b=1", "c=1", "d=1"}, evaluate);
  };
  const auto remedy = fastest_within(30);
  REQUIRE(remedy);
  CHECK(remedy->assignment == "c=1");
  CHECK(remedy->need.iteration == Seconds{2});
  CHECK(fastest_within(10)->assignment == "d=1");
  CHECK_FALSE(fastest_within(9));
}

TEST_CASE("The error ends with the change that fits, or says that none does", "[sim][memory]") {
  const auto full = over(two_stages(), of_memory({30'000'000}));
  CHECK_THAT(
      refusal(*full, Remedy{"training.recompute=full", {{29'000'000}, {12.5}}}),
      Catch::Matchers::EndsWith("gradients 5.000 MB; training.recompute=full fits, with 29.00 "
                                "MB and 12.50 s per iteration"));
  CHECK_THAT(refusal(*full, {}),
             Catch::Matchers::EndsWith("; no single change that was tried fits"));
}

TEST_CASE("The proposed changes differ from the scenario's own settings", "[sim][memory]") {
  const Scenario plain = scenario();
  CHECK(offers(plain, "training.recompute=full"));
  CHECK(offers(plain, "training.recompute=selective"));
  CHECK(offers(plain, "pipeline.schedule=1f1b"));
  CHECK(offers(plain, "pipeline.ranks=4"));
  CHECK_FALSE(offers(changed(plain, "cluster.devices_per_node=3"), "pipeline.ranks=4"));
  CHECK_FALSE(offers(plain, "training.zero=1"));  // one replica has no other to shard with
  CHECK(offers(changed(plain, "pipeline.replicas=2"), "training.zero=1"));
  CHECK_FALSE(offers(changed(plain, "training.recompute=full"), "training.recompute=selective"));
  CHECK_FALSE(offers(changed(plain, "pipeline.schedule=1f1b"), "pipeline.schedule=1f1b"));
  for (const std::string& change : leaner_changes(plain))
    CHECK_FALSE(changed(plain, change) == plain);
}

}  // namespace memory_cap_test
