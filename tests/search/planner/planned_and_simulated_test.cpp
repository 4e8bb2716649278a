#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "pipewright/models/transformer/transformer_costs.hpp"
#include "pipewright/models/transformer/transformer_memory.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/known_transformers.hpp"
#include "pipewright/plan/model/transformer_shape.hpp"
#include "pipewright/plan/scenario/scenario_cut.hpp"
#include "pipewright/search/calibration/run_simulator.hpp"
#include "pipewright/search/planner/plan_files.hpp"
#include "pipewright/search/planner/plan_price.hpp"
#include "pipewright/search/planner/plan_search.hpp"
#include "pipewright/sim/scenario/device_memory.hpp"
#include "search/support/drawn_plans.hpp"
#include "support/catch.hpp"

namespace planned_and_simulated_test {

using namespace pipewright;
using plan::Bytes;
using plan::JsonDocument;

/// Returns the scenario as read back from its file.
plan::Scenario read_back(const plan::Scenario& scenario) {
  return plan::scenario_from_json(JsonDocument::parse(to_json(scenario).dump(2), "scenario.json"));
}
plan::LayerCosts read_back(const plan::LayerCosts& costs) {
  return plan::layer_costs_from_json(JsonDocument::parse(to_json(costs).dump(2), "costs.json"));
}

void check_equal(const search::PlanFacts& simulated, const search::FoundPlan& plan) {
  CHECK(simulated.iteration_s == Approx(plan.iteration_s).epsilon(1e-12));
  CHECK(simulated.units_per_s == Approx(plan.tokens_per_s).epsilon(1e-12));
  CHECK(simulated.mfu == Approx(plan.mfu).epsilon(1e-12));
  CHECK(simulated.bubble == Approx(plan.bubble).margin(1e-12));
  CHECK(simulated.peaks == plan.held);
}

/// Returns the difference of two figures as a fraction of the second.
double apart(double one, double other) { return std::abs(one / other - 1); }

TEST_CASE("The planner's times of a plan equal the simulation of its written scenario",
          "[sim][planner]") {
  test::PlanDraw draw(1);
  int compared = 0, whole = 0, beside = 0;
  std::set<std::string> families, schedules;
  while (compared < 300) {
    const test::DrawnSpace drawn = draw.next();
    const auto& training = drawn.space.training;
    const search::PlanAnswer answer =
        search::search_plans(drawn.cluster, drawn.space, {.most_plans = 3});
    for (const search::FoundPlan& plan : answer.plans) {
      const plan::Cut& cut = plan.cut;
      CAPTURE(training.model.name, drawn.cluster.name, cut.tensor, cut.pipeline, cut.data,
              cut.context, cut.expert, cut.chunks, cut.microbatch, cut.zero, cut.sequence_parallel,
              schedule_name(cut), to_string(cut.recompute));
      const plan::Scenario written = search::scenario_of(drawn.cluster, training, cut);
      const plan::Scenario scenario = read_back(written);
      const auto costs = models::transformer_costs(written.cluster, training, cut);
      check_equal(search::facts_of(scenario, read_back(costs)), plan);
      const sim::ScenarioPlan laid_out = sim::lay_out(scenario, costs);
      std::vector<sim::MemoryPeak> peaks;
      for (const Bytes own : plan.held)
        peaks.push_back({.held = own});
      CHECK(sim::needs_of(scenario, costs, laid_out, peaks) == plan.peaks);
      CHECK(plan.least_s <= plan.iteration_s);
      CHECK(plan.least_bytes <= plan.peak_bytes);

      // A scenario without costs gives the same figures, because costs follow from it.
      const plan::TransformerTraining said =
          plan::training_of(scenario.model.as<plan::TransformerShape>(), plan::batch_of(scenario));
      CHECK(said == training);
      CHECK(models::transformer_costs(scenario.cluster, said, plan::cut_of(scenario)) == costs);

      ++compared;
      families.insert(training.model.name);
      schedules.emplace(schedule_name(cut));

      // The closed forms, which know neither separate collectives nor transfers between stages.
      search::RunSimulator closed(drawn.cluster);
      const double time =
          closed.iteration(training, cut, models::times_on(drawn.cluster, training, cut));
      const double peak = models::peak_of(models::transformer_memory(training, cut),
                                          models::machine_of(drawn.cluster).constants);
      const auto held = static_cast<double>(std::ranges::max_element(plan.held)->value);
      // A stage that computes is whole, and is reduced and all-gathered for each microbatch, which
      // the closed forms leave out.
      if (cut.zero >= 2) {
        CHECK(held > 0.95 * peak);
        ++beside;
        continue;
      }
      CHECK(apart(held, peak) < 0.05);
      // Replicas of an expert are on several nodes, and the input gradient waits for
      // tensor-parallel communication.
      if (!training.model.has_mixture() &&
          !models::pipeline_shape(cut, training.batch).splits_backward) {
        // If a rank has several stages, the closed forms overlap transfers with passes.
        CHECK(apart(plan.iteration_s, time) < (cut.chunks == 1 ? 0.05 : 0.15));
        ++whole;
      }
    }
  }
  CHECK(families.size() > 10);
  CHECK(schedules.size() == models::planned_schedules().size());
  CHECK(whole > 30);
  CHECK(beside > 30);
}

TEST_CASE(
    "The planner equals the simulation with 8-bit products, overlapped all-reduces and stored "
    "scores",
    "[sim][planner]") {
  const plan::Cluster cluster = plan::cluster_from_json(
      JsonDocument::read(PIPEWRIGHT_SOURCE_DIR "/scenarios/clusters/h100-sxm.json"));
  search::PlanSpace space;
  space.training.model = *plan::find_transformer("llama3-8b");
  space.training.sequence = 2048, space.training.batch = 32;
  space.gpus = 16;
  space.tensor = {1, 2}, space.pipeline = {2, 4}, space.zero = {0, 1};
  double half_s = 0;
  for (const auto precision : {plan::ProductPrecision::Half, plan::ProductPrecision::Float8}) {
    space.training.precision = precision;
    for (const bool overlaps : {false, true}) {
      space.overlaps_gradients = overlaps;
      space.sequence_parallel = {overlaps};
      const search::PlanAnswer answer = search::search_plans(cluster, space, {.most_plans = 3});
      const search::PlanAnswer all =
          search::search_plans(cluster, space, {.most_plans = 3, .exhaustive = true});
      REQUIRE(answer.plans.size() == 3);
      for (std::size_t at = 0; at < 3; ++at) {
        const search::FoundPlan& plan = answer.plans[at];
        CHECK(plan.iteration_s == all.plans[at].iteration_s);
        CHECK(plan.cut.sequence_parallel == (overlaps && plan.cut.tensor > 1));
        CHECK(plan.least_s <= plan.iteration_s);
        const plan::Scenario written = search::scenario_of(cluster, space.training, plan.cut);
        CHECK(written.pipeline.overlap_reductions == overlaps);
        const auto costs = models::transformer_costs(written.cluster, space.training, plan.cut);
        check_equal(search::facts_of(read_back(written), read_back(costs)), plan);
      }
      if (precision == plan::ProductPrecision::Half && !overlaps)
        half_s = answer.plans.front().iteration_s;
      else if (!overlaps)
        CHECK(answer.plans.front().iteration_s < half_s);
    }
  }
}

}  // namespace planned_and_simulated_test
