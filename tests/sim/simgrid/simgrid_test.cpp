#include "pipewright/sim/simgrid/simgrid.hpp"

#include <fmt/format.h>

#include <random>
#include <utility>

#include "pipewright/plan/error.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "sim/support/equal_ranks.hpp"
#include "sim/support/random_costs.hpp"
#include "sim/support/structures.hpp"
#include "sim/support/two_nodes.hpp"
#include "support/error_of.hpp"
#include "support/skip.hpp"
#include "support/temp_folder.hpp"

namespace simgrid_test {

using namespace pipewright::plan;
using namespace pipewright::sim;
using namespace pipewright::test;

void need_simgrid() {
  if (!built_with_simgrid())
    skip("built without SimGrid");
}

/// Counts of programs and events on which both engines agree.
struct Agreement {
  int programs = 0;
  std::size_t events = 0;
  double largest = 0;  // difference, in iteration times

  void compare(const Structure& structure, const StepCosts& costs) {
    const Times simgrid = simulate_on_simgrid(structure, costs);
    Simulator simulator(structure);
    const Times& native = simulator.run(costs);
    const double difference = largest_difference(simgrid, native) / native.iteration;
    REQUIRE(difference <= 1e-9);
    largest = std::max(largest, difference);
    events += native.events.size();
    ++programs;
  }
};

/// Returns two pairs of hosts, z to x and y to w, over one backbone of 100 bytes per second.
std::string crossing_platform() {
  std::string text =
      "<?xml version='1.0'?>\n"
      "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
      "<platform version=\"4.1\"><zone id=\"all\" routing=\"Full\">\n";
  for (const char* host : {"z", "y", "x", "w"})
    text += fmt::format("<host id=\"{0}\" speed=\"1f\"/>\n", host);
  for (const char* host : {"z", "y", "x", "w"})
    text += fmt::format("<link id=\"{0}\" bandwidth=\"100Bps\" latency=\"500ms\"/>\n", host);
  text += "<link id=\"backbone\" bandwidth=\"100Bps\" latency=\"1s\"/>\n";
  for (const auto& [from, to] : {std::pair{"z", "x"}, {"y", "w"}})
    text += fmt::format(
        "<route src=\"{0}\" dst=\"{1}\">"
        "<link_ctn id=\"{0}\"/><link_ctn id=\"backbone\"/><link_ctn id=\"{1}\"/></route>\n",
        from, to);
  return text + "</zone></platform>\n";
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), with);
}

/// Returns the error of a platform for two pipelines of two stages.
std::string complaint(const std::filesystem::path& platform) {
  LoweringOptions options;
  const Structure structure(lower(make("inference", 2, 1), options));
  StepCosts costs = seconds_and_hundreds(2, two_nodes(2, true));
  costs.replicas = 2;
  return error_of([&] { simulate_on_simgrid(structure, costs, platform); });
}

TEST_CASE("SimGrid gives every instruction the native engine's times without shared links",
          "[sim][simgrid][soak]") {
  need_simgrid();
  Agreement agreement;
  PairCover cover;
  std::mt19937 random(31);
  int round = 0;
  for (const std::string& name : schedule_names())
    for (const auto& [ranks, microbatches] : {std::pair{1, 3}, {2, 4}, {4, 8}, {4, 12}})
      for (const LoweringOptions& options : all_ways_to_communicate()) {
        CAPTURE(name, ranks, microbatches, to_string(options.communicators),
                to_string(options.transfers), options.blocking, options.replicas);
        try {
          const auto values = values_of(name, ranks, microbatches, options);
          if (!cover.needs(values))
            continue;
          const Structure structure(lower(make(name, ranks, microbatches), options));
          agreement.compare(structure, random_costs(structure.program(), random, round++));
          cover.add(values);
        } catch (const InputError&) {  // sizes that the schedule does not support
        } catch (const Infeasible&) {  // a deadlock
        }
      }
  CHECK(agreement.programs > (covers_all() ? 1000 : 150));
  fmt::print(
      "SimGrid and native agree on {} programs, {} instructions; largest difference {:.1e}\n",
      agreement.programs, agreement.events, agreement.largest);
}

TEST_CASE("Data-parallel pipelines run all their collectives in the native engine's time",
          "[sim][simgrid]") {
  need_simgrid();
  Agreement agreement;
  std::mt19937 random(32);
  for (const std::string& name : schedule_names())
    for (const int replicas : {2, 3, 8}) {
      CAPTURE(name, replicas);
      try {
        const Schedule schedule = make(name, 4, 8);
        LoweringOptions options;
        options.replicas = replicas;
        options.overlap_reductions = replicas != 3;
        options.tied_stages = {0, 1, stage_count(schedule) - 1};
        options.zero = replicas == 2;
        options.gradient_norm = replicas == 8;
        options.share_loss = true;
        const Structure structure(lower(schedule, options));
        StepCosts costs = random_costs(structure.program(), random, 1);
        for (StageCost& stage : costs.stages)
          stage.tied = stage.parameters = {70};
        costs.replicas = replicas;
        costs.cluster.devices_per_node *= replicas;
        agreement.compare(structure, costs);
      } catch (const InputError&) {
      }
    }
  CHECK(agreement.programs > 60);
  fmt::print("SimGrid and native agree on {} programs of 2, 3 and 8 pipelines, {} instructions\n",
             agreement.programs, agreement.events);
}

TEST_CASE(
    "Links with segments, and with all-reduces on a separate link, take as long on both engines",
    "[sim][simgrid]") {
  need_simgrid();
  Agreement agreement;
  std::mt19937 random(33);
  for (const bool sums_apart : {false, true})
    for (const char* name : {"gpipe", "1f1b", "zbv", "data-parallel"}) {
      CAPTURE(name, sums_apart);
      LoweringOptions options;
      options.replicas = 3;
      options.share_loss = true;
      const Structure structure(lower(make(name, 4, 8), options));
      StepCosts costs = random_costs(structure.program(), random, 1);
      for (StageCost& stage : costs.stages) {
        stage.output = stage.input_gradient_bytes = {static_cast<std::int64_t>(random() % 200)};
        stage.gradients = {static_cast<std::int64_t>(random() % 600)};
      }
      costs.replicas = 3;
      costs.cluster = two_nodes(3, false);
      costs.cluster.within_node.segments = {{{80}, {0.9}, 200}, {{150}, {1.4}, 400}};
      costs.cluster.between_nodes.latency = {0.25};
      costs.cluster.between_nodes.segments = {{{100}, {1.1}, 300}};
      if (sums_apart) {
        costs.cluster.within_node.collective_bandwidth_per_s = 50;
        costs.cluster.between_nodes.collective_bandwidth_per_s = 70;
        costs.cluster.between_nodes.collective_latency = {0.125};
      }
      agreement.compare(structure, costs);
    }
  CHECK(agreement.programs == 8);
}

TEST_CASE("Two pipelines that share a network card send at half its speed", "[sim][simgrid]") {
  need_simgrid();
  const Structure structure(lower(make("inference", 2, 1)));
  StepCosts costs = seconds_and_hundreds(2, two_nodes(2, true));
  CHECK(simulate_on_simgrid(structure, costs).iteration == Approx(3).epsilon(1e-12));
  costs.replicas = 2;  // 1 + 2 + 1, where a card for each takes 1 + 1 + 1
  CHECK(simulate_on_simgrid(structure, costs).iteration == Approx(4).epsilon(1e-12));
  costs.cluster.between_nodes.shared = false;
  CHECK(simulate_on_simgrid(structure, costs).iteration == Approx(3).epsilon(1e-12));
}

TEST_CASE("Transfers that overlap in part share for as long as they overlap", "[sim][simgrid]") {
  need_simgrid();
  // Stages 0 and 2 are on the first node, 1 and 3 on the second. From 5.5 on 0F4 and 2F0 are sent
  // together; 0F4, half sent, is done at 6.5 and 2F0 sends its second half alone.
  ScheduleRequest request;
  request.name = "inference";
  request.ranks = 4;
  request.microbatches = 5;
  request.rank_of_stage = {0, 2, 1, 3};
  const Structure structure(lower(make_schedule(request)));
  StepCosts costs = seconds_and_hundreds(4, two_nodes(2, true));
  costs.stages[2].forward = {1.5};
  const Times times = simulate_on_simgrid(structure, costs);
  CHECK(end_of(structure, times, "1RECV_F4") == Approx(6.5).epsilon(1e-12));
  CHECK(end_of(structure, times, "3RECV_F0") == Approx(7).epsilon(1e-12));
}

TEST_CASE("Reductions of two stages share the network cards that both need", "[sim][simgrid]") {
  need_simgrid();
  LoweringOptions options;
  options.replicas = 2;
  const Structure structure(lower(make("gpipe", 2, 1), options));
  // Each node runs a whole pipeline, and transfers inside it take no time.
  StepCosts costs = seconds_and_hundreds(2, two_nodes(1, true));
  costs.cluster.within_node = {.latency = {},
                               .bandwidth_per_s = std::numeric_limits<double>::infinity()};
  costs.replicas = 2;
  costs.stages[0].gradients = costs.stages[1].gradients = {200};
  // Alone each takes 2 s. Stage 1 begins at 3 and is half done at 4, when stage 0 joins.
  const Times times = simulate_on_simgrid(structure, costs);
  CHECK(end_of(structure, times, "1REDUCE_GRAD") == Approx(6).epsilon(1e-12));
  CHECK(end_of(structure, times, "0REDUCE_GRAD") == Approx(7).epsilon(1e-12));
}

TEST_CASE("A network card sends and receives at the same time, a bus does not", "[sim][simgrid]") {
  need_simgrid();
  const Structure structure(lower(make("1f1b", 2, 2)));
  // 0F1 ends at 6 and is sent while 1B0, which ends at 6 as well, is sent back.
  StepCosts costs = seconds_and_hundreds(2, two_nodes(1, true));
  costs.stages[0].forward = {3};
  const Times card = simulate_on_simgrid(structure, costs);
  CHECK(end_of(structure, card, "1RECV_F1") == Approx(7).epsilon(1e-12));
  CHECK(end_of(structure, card, "0RECV_B0") == Approx(7).epsilon(1e-12));
  costs.cluster.nodes = 1;
  costs.cluster.devices_per_node = 2;
  const Times bus = simulate_on_simgrid(structure, costs);
  CHECK(end_of(structure, bus, "1RECV_F1") == Approx(8).epsilon(1e-12));
  CHECK(end_of(structure, bus, "0RECV_B0") == Approx(8).epsilon(1e-12));
}

TEST_CASE("A platform file: flows that cross share the backbone, latencies add up",
          "[sim][simgrid]") {
  need_simgrid();
  const TempFolder folder;
  const auto platform = folder.write("crossing.xml", crossing_platform());
  const Structure structure(lower(make("inference", 2, 1)));
  StepCosts costs = seconds_and_hundreds(2, two_nodes(1, false));
  costs.replicas = 2;  // z and y run stage 0, x and w stage 1
  const Times times = simulate_on_simgrid(structure, costs, platform);
  CHECK(times.iteration == Approx(1 + 2 + 2 + 1).epsilon(1e-12));

  const auto wide =
      folder.write("wide.xml", replaced(crossing_platform(), "\"backbone\" bandwidth=\"100Bps\"",
                                        "\"backbone\" bandwidth=\"200Bps\""));
  CHECK(simulate_on_simgrid(structure, costs, wide).iteration == Approx(5).epsilon(1e-12));
}

TEST_CASE("An unusable platform file is rejected with an error message", "[sim][simgrid]") {
  need_simgrid();
  const TempFolder folder;
  const std::string good = crossing_platform();
  CHECK(complaint(folder.write("good.xml", good)) == "no error");

  const auto missing = folder.path() / "missing.xml";
  CHECK(complaint(missing) == missing.string() + ": cannot be read, or is empty");
  const auto broken = folder.write("broken.xml", replaced(good, "</zone>", "<zone>"));
  CHECK_THAT(complaint(broken),
             Catch::Contains(broken.string() + ":") && Catch::Contains("Invalid XML"));
  const auto unknown = folder.write(
      "unknown.xml", replaced(good, "link_ctn id=\"backbone\"", "link_ctn id=\"backbond\""));
  CHECK_THAT(complaint(unknown),
             Catch::Contains(unknown.string() + ":") && Catch::Contains("backbond"));
  const auto apart =
      folder.write("apart.xml", replaced(good, "src=\"y\" dst=\"w\"", "src=\"y\" dst=\"x\""));
  CHECK(complaint(apart) == apart.string() + ": no route from host \"y\" to host \"w\"");
  const auto small = folder.write(
      "small.xml",
      "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
      "<platform version=\"4.1\"><zone id=\"all\" routing=\"Full\">"
      "<host id=\"lonely\" speed=\"1f\"/></zone></platform>\n");
  CHECK(complaint(small) ==
        small.string() + ": 4 devices are needed, but the platform has 1 hosts: lonely");
}

TEST_CASE("Every kind of zone without a route is rejected with the hosts' names",
          "[sim][simgrid]") {
  need_simgrid();
  const TempFolder folder;
  const std::string apart =
      replaced(crossing_platform(), "src=\"y\" dst=\"w\"", "src=\"y\" dst=\"x\"");
  for (const std::string routing : {"Full", "Floyd", "Dijkstra"}) {
    const auto file =
        folder.write(routing + ".xml", replaced(apart, "\"Full\"", "\"" + routing + "\""));
    CHECK_THAT(complaint(file), Catch::Contains("host \"y\" to host \"w\""));
  }
}

}  // namespace simgrid_test
