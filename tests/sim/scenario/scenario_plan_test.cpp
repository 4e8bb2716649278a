#include "pipewright/sim/scenario/scenario_plan.hpp"

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "pipewright/sim/memory/memory.hpp"
#include "pipewright/sim/scenario/sweep.hpp"
#include "support/catch.hpp"
#include "support/custom_model.hpp"
#include "support/error_of.hpp"

namespace scenario_plan_test {

using namespace pipewright::plan;
using namespace pipewright::sim;
using pipewright::test::error_of;

const std::string folder = PIPEWRIGHT_SOURCE_DIR "/scenarios/shared-card/";

Scenario shared_card(const std::vector<std::string>& assignments = {}) {
  auto document = JsonDocument::read(folder + "scenario.json");
  for (const std::string& assignment : assignments)
    document.set(assignment);
  return scenario_from_json(document);
}

LayerCosts costs() { return layer_costs_from_json(JsonDocument::read(folder + "costs.json")); }

TEST_CASE("Tokens per second count the length of each microbatch, MFU the existing passes",
          "[sim][scenario]") {
  const auto plan = lay_out(shared_card(), costs());
  // 16 microbatches of 4 sequences of 128 tokens in 4 pipelines.
  CHECK(throughput_of(shared_card(), plan, 2).units_per_s == 16 * 4 * 128 * 4 / 2.0);
  CHECK(throughput_of(shared_card(), plan, 2).mfu == 0);  // no peak is known
  Scenario own = shared_card();
  own.model = pipewright::test::StackShape{};  // five words per sample
  CHECK(throughput_of(own, plan, 2).unit == "words");
  CHECK(throughput_of(own, plan, 2).units_per_s == 16 * 4 * 5 * 4 / 2.0);
  const auto ragged = shared_card({"pipeline.microbatches=2", "training.microbatch_lengths=[1,3]"});
  CHECK(throughput_of(ragged, lay_out(ragged, costs()), 2).units_per_s == 4 * 4 * 128 * 4 / 2.0);

  double forward = 0;
  for (const Layer& layer : model_of(shared_card()).layers)
    forward += layer.forward_flops;
  const auto known = shared_card({"cluster.device.flops_per_s=1e12"});
  CHECK(throughput_of(known, lay_out(known, costs()), 2).mfu ==
        Approx(3 * forward * 64 * 4 / (2 * 16 * 1e12)));
  const auto inference =
      shared_card({"cluster.device.flops_per_s=1e12", "pipeline.schedule=inference"});
  CHECK(throughput_of(inference, lay_out(inference, costs()), 2).mfu ==
        Approx(forward * 64 * 4 / (2 * 16 * 1e12)));
}

TEST_CASE("The iteration includes a runtime's costs per action, per message and per step",
          "[sim][scenario]") {
  const auto scenario =
      shared_card({"pipeline.ranks=2", "pipeline.replicas=1", "pipeline.microbatches=1",
                   "pipeline.schedule=gpipe", "cluster.devices_per_node=2", "cluster.nodes=1"});
  const auto iteration = [&](const std::optional<RuntimeCost>& runtime) {
    LayerCosts own = costs();
    own.runtime = runtime;
    const auto plan = lay_out(scenario, own);
    return Simulator(*plan.structure).iteration(plan.costs);
  };
  RuntimeCost runtime;
  const double without = iteration({});
  CHECK(iteration(runtime) == without);
  runtime.forward = {1};
  runtime.backward = {2};
  CHECK(iteration(runtime) == Approx(without + 2 * 3));  // one after the other on both ranks
  runtime.iteration = {4};
  CHECK(iteration(runtime) == Approx(without + 2 * 3 + 4));
  runtime.receive = {0.5};
  CHECK(iteration(runtime) == Approx(without + 2 * 3 + 4 + 2 * 0.5));
}

TEST_CASE("Boundaries of a scenario are those of its plan", "[sim][scenario]") {
  const std::vector<std::string> four{"pipeline.ranks=4", "pipeline.replicas=1"};
  const Partition balanced = lay_out(shared_card(four), costs()).partition;
  auto by_hand = four;
  by_hand.push_back("pipeline.partition=" + to_string(balanced.boundaries));
  CHECK(lay_out(shared_card(by_hand), costs()).partition == balanced);
  std::vector<int> moved = balanced.boundaries;
  ++moved[1];
  by_hand.back() = "pipeline.partition=" + to_string(moved);
  CHECK(lay_out(shared_card(by_hand), costs()).partition.boundaries == moved);
}

TEST_CASE("Plans that differ in costs alone share a Structure", "[sim][scenario]") {
  StructureCache cache;
  const auto one = lay_out(shared_card(), costs(), &cache);
  const auto slower =
      lay_out(shared_card({"cluster.between_nodes.bandwidth_per_s=1e8"}), costs(), &cache);
  const auto longer = lay_out(shared_card({"pipeline.microbatches=8"}), costs(), &cache);
  CHECK(one.structure == slower.structure);
  CHECK(one.structure != longer.structure);
  Simulator simulator(*one.structure);
  CHECK(simulator.iteration(one.costs) < simulator.iteration(slower.costs));
}

TEST_CASE("Schedules with a limit on memory get that of the device, the loosest that fits",
          "[sim][scenario]") {
  for (const std::string name : {"zb-auto", "v-zb"}) {
    std::vector<std::string> wanted{"pipeline.schedule=" + name, "pipeline.microbatches=8",
                                    "cluster.device.memory_bytes=0"};
    if (name == "v-zb")
      wanted.emplace_back("pipeline.chunks=2");
    CAPTURE(name);
    const auto figures = [&](std::int64_t cap) {
      wanted[2] = "cluster.device.memory_bytes=" + std::to_string(cap);
      const Scenario scenario = shared_card(wanted);
      const ScenarioPlan plan = lay_out(scenario, costs());
      Simulator simulator(*plan.structure);
      MemoryModel model(*plan.structure, holding_of(scenario, plan.program()));
      const Times& times = simulator.run(plan.costs);
      return std::pair(model.curves(plan.costs, times).highest_peak().value, times.iteration);
    };
    const auto [most, quickest] = figures(0);
    std::int64_t last = most;
    int smaller = 0;
    // Reduces the memory to one byte less than needed before, until nothing fits any more.
    while (true) {
      const auto [peak, iteration] = figures(last - 1);
      if (peak >= last) {
        CHECK(peak == most);  // no limit suffices: the plan has none
        break;
      }
      CHECK(iteration >= quickest);
      last = peak;
      ++smaller;
    }
    CHECK(smaller >= 3);
    CHECK(static_cast<double>(last) < 0.9 * static_cast<double>(most));
  }
}

TEST_CASE("Costs of another model or microbatch size are rejected", "[sim][scenario]") {
  CHECK_THAT(error_of([] { lay_out(shared_card({"training.microbatch_size=8"}), costs()); }),
             Catch::Matchers::Contains("training.microbatch_size is 8"));
  CHECK_THAT(error_of([] { lay_out(shared_card({"model.blocks=5"}), costs()); }),
             Catch::Matchers::Contains("the costs are for"));
}

TEST_CASE("A sweep fills every row once, and stops on request", "[sim][sweep]") {
  const std::atomic<bool> decode_step{false};
  std::size_t last = 0;
  const auto row = [](std::size_t i) {
    SweepRow made;
    made.iteration_s = static_cast<double>(i);
    return made;
  };
  const auto rows = sweep(
      1000, row, [&](std::size_t done) { last = done; }, decode_step);
  CHECK(last == 1000);
  for (std::size_t i = 0; i < rows.size(); ++i)
    REQUIRE(rows[i].iteration_s == static_cast<double>(i));

  std::atomic<bool> stop{false};
  std::size_t finished = 0;
  sweep(
      1000, row,
      [&](std::size_t done) {
        finished = done;
        stop = done >= 10;
      },
      stop);
  CHECK(finished >= 10);
  CHECK(finished < 1000);
  CHECK_THROWS_AS(sweep(
                      10, [](std::size_t) -> SweepRow { throw InputError("no"); },
                      [](std::size_t) {}, decode_step),
                  InputError);
}

}  // namespace scenario_plan_test
