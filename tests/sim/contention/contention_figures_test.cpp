// The figures of docs/contention.md.

#include <filesystem>

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/partitioners/balanced.hpp"
#include "pipewright/plan/partitioners/layer_weights.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "pipewright/sim/simgrid/simgrid.hpp"
#include "support/catch.hpp"
#include "support/skip.hpp"

namespace contention_figures_test {

using namespace pipewright::plan;
using namespace pipewright::sim;

/// Milliseconds per iteration.
struct Figures {
  double alone;  // every transfer with the card to itself
  double shared;
  double simgrid;
};

/// Predicts the scenario with its costs as `pipewright simulate` does.
Figures figures(const std::string& schedule, int pipelines) {
  const auto folder = std::filesystem::path(PIPEWRIGHT_SOURCE_DIR) / "scenarios" / "shared-card";
  Scenario scenario = scenario_from_json(JsonDocument::read(folder / "scenario.json"));
  scenario.pipeline.schedule = schedule;
  scenario.pipeline.replicas = scenario.cluster.devices_per_node = pipelines;
  const LayerCosts costs = layer_costs_from_json(JsonDocument::read(folder / "costs.json"));
  const ScheduleRequest request = request_of(scenario.pipeline);

  Partition partition;
  partition.boundaries = balanced_boundaries(profile_weights(costs), stage_count(request));
  LoweringOptions options = lowering_of(request);
  options.replicas = pipelines;
  const Structure structure(lower(make_schedule(request), options));
  StepCosts step;
  step.stages = stage_costs(costs, partition);
  step.cluster = scenario.cluster;
  step.replicas = pipelines;
  Simulator simulator(structure);
  return {1e3 * simulator.iteration(step), 1e3 * simulator.run_shared(step).iteration,
          1e3 * simulate_on_simgrid(structure, step).iteration};
}

TEST_CASE("The iteration times in docs/contention.md are reproduced", "[sim][simgrid]") {
  if (!built_with_simgrid())
    pipewright::test::skip("built without SimGrid");
  struct Row {
    std::string schedule;
    int pipelines;
    double alone, shared;
  };
  for (const Row& row : {Row{"gpipe", 1, 114.25, 114.25},
                         {"gpipe", 2, 114.29, 116.80},
                         {"gpipe", 4, 114.31, 121.86},
                         {"1f1b", 1, 119.98, 119.98},
                         {"1f1b", 2, 120.02, 129.43},
                         {"1f1b", 4, 120.04, 150.52},
                         {"interleaved-1f1b", 1, 110.25, 110.25},
                         {"interleaved-1f1b", 2, 110.29, 113.22},
                         {"interleaved-1f1b", 4, 110.31, 118.41},
                         {"zbv", 1, 103.82, 105.04},
                         {"zbv", 2, 103.86, 110.51},
                         {"zbv", 4, 103.88, 147.85}}) {
    const Figures found = figures(row.schedule, row.pipelines);
    CAPTURE(row.schedule, row.pipelines);
    CHECK(found.alone == Approx(row.alone).margin(0.005));
    CHECK(found.shared == Approx(row.shared).margin(0.005));
    CHECK(found.simgrid == Approx(found.shared).epsilon(1e-9));
  }
}

}  // namespace contention_figures_test
