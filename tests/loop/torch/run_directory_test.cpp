// Tests that a run's folder round-trips.

#include "pipewright/loop/record/run_directory.hpp"

#include "loop/torch/support/verified_plans.hpp"
#include "pipewright/loop/compare/comparison.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/gpt_model.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace run_directory_test {

using namespace pipewright;

plan::LayerCosts costs_of(const plan::Scenario& scenario) {
  const std::atomic<bool> never{false};
  return loop::measure_costs(scenario, loop::Workload(scenario), {}, never, {});
}

TEST_CASE("A run directory reads back as it was written", "[loop]") {
  plan::Scenario scenario = test::odd_scenario();
  scenario.model.as<plan::GptShape>().vocabulary = 256;  // the only value that a file can have
  scenario.pipeline.microbatches = 4;
  const plan::LayerCosts costs = costs_of(scenario);
  const loop::Plan plan = loop::make_plan(scenario, costs);
  plan::Timeline measured = plan.predicted;
  measured.name = "measured";

  const test::TempFolder folder;
  loop::RunDirectory directory(folder.path() / "run", scenario.name);
  directory.write_plan(scenario, costs, plan);
  const loop::StoredRun begun = loop::read_run(directory.path());
  CHECK(begun.scenario == scenario);
  CHECK(begun.costs == costs);
  CHECK(begun.partition == plan.partition);
  CHECK(begun.program == plan.program());
  CHECK(begun.predicted.length == plan.predicted.length);
  CHECK_FALSE(begun.planned.has_value());
  CHECK_FALSE(begun.measured.has_value());
  CHECK(begun.report.is_null());

  plan::Timeline rehearsed = plan.predicted;
  rehearsed.length = plan.predicted.length * 2;
  directory.write_rehearsal(costs, rehearsed);
  directory.write_timelines(plan, measured, "a run");
  directory.write_report({{"format", "pipewright/report/1"}});
  const loop::StoredRun ended = loop::read_run(directory.path());
  CHECK(ended.rehearsed_costs == costs);
  REQUIRE(ended.planned.has_value());
  CHECK(ended.planned->length == plan.predicted.length);
  CHECK(ended.predicted.length == rehearsed.length);
  REQUIRE(ended.measured.has_value());
  CHECK(ended.report.at("format") == "pipewright/report/1");
  const loop::Comparison found = loop::compare(*ended.planned, *ended.measured);
  CHECK(to_json(found).at("error_percent").at("iteration_s") == 0.0);
}

TEST_CASE("A folder that is no run directory is rejected", "[loop]") {
  const test::TempFolder folder;
  CHECK(test::error_of([&] { loop::read_run(folder.path()); }).find("scenario.json") !=
        std::string::npos);
}

}  // namespace run_directory_test
