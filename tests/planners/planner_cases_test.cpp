#include "planners/planner_cases.hpp"

#include <algorithm>
#include <map>

#include "pipewright/search/partitioners/replicated_partition.hpp"
#include "support/catch.hpp"

namespace planner_cases_test {

using namespace pipewright;
using namespace pipewright::planners;

const std::filesystem::path folder = PIPEWRIGHT_PLANNER_DATA;

TEST_CASE("Our search is never worse on the inputs of other planners", "[planners]") {
  const auto cases = read_planner_cases(folder);
  REQUIRE(cases.size() == 19);
  for (const PlannerCase& input : cases) {
    const double answer = planner_answer(input, folder);
    CAPTURE(input.name(), answer, input.optimum, input.unit);
    CHECK(input.loss(answer) <= input.tolerance());
    CHECK(input.loss(answer) > -1e-5);  // a much better answer would follow another rule
  }
}

TEST_CASE("A worse answer is distinguished from rounding", "[planners]") {
  const PlannerCase time{
      .planner = "piper", .input = {}, .optimum = 0.5, .rounding = 0.005, .unit = {}};
  CHECK(time.loss(0.504) <= time.tolerance());
  CHECK(time.loss(0.506) > time.tolerance());
  CHECK(time.loss(0.4) < 0);
  const PlannerCase rate{
      .planner = "calculon", .input = {}, .optimum = 100, .rounding = 0, .unit = {}};
  CHECK(rate.loss(99) == Approx(0.01));
  CHECK(rate.loss(101) < 0);
}

/// Computes PipeDream's time from the nodes of a stage.
double stage_seconds(const search::ProfileGraph& graph, const search::ReplicatedStage& stage,
                     double bandwidth_per_s) {
  double compute = 0, parameters = 0;
  for (const search::ProfileNode& node : graph.nodes)
    if (std::find(stage.nodes.begin(), stage.nodes.end(), node.id) != stage.nodes.end()) {
      compute += node.compute.value;
      parameters += node.parameters;
    }
  const double machines = stage.replicas;
  return (compute + 4 * (machines - 1) * parameters / (machines * bandwidth_per_s)) / machines;
}

TEST_CASE("Stages of a PipeDream profile have the times that PipeDream computes", "[planners]") {
  int profiles = 0;
  for (const PlannerCase& input : read_planner_cases(folder)) {
    if (input.planner != "pipedream")
      continue;
    ++profiles;
    CAPTURE(input.name());
    const auto graph = search::without_ends(search::read_profile_graph(folder / input.input));
    const auto cut =
        search::replicated_partition(graph, {.levels = {{input.devices, input.bandwidth_per_s}}});
    int machines = 0;
    double slowest = 0;
    std::map<std::string, std::size_t> stage_of;
    for (std::size_t stage = 0; stage < cut.stages.size(); ++stage) {
      machines += cut.stages[stage].replicas;
      slowest = std::max(slowest, stage_seconds(graph, cut.stages[stage], input.bandwidth_per_s));
      for (const std::string& node : cut.stages[stage].nodes)
        CHECK(stage_of.emplace(node, stage).second);
    }
    CHECK(machines == input.devices);
    CHECK(slowest == Approx(cut.slowest_stage.value).epsilon(1e-9));
    CHECK(stage_of.size() == graph.nodes.size());
    for (const search::ProfileEdge& edge : graph.edges)
      CHECK(stage_of[graph.nodes[static_cast<std::size_t>(edge.from)].id] <=
            stage_of[graph.nodes[static_cast<std::size_t>(edge.to)].id]);
  }
  CHECK(profiles == 7);
}

}  // namespace planner_cases_test
