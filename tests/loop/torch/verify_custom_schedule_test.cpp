// Tests that a user's schedule, in every form, is bit-identical to serial training.

#include <fmt/ranges.h>

#include <numeric>

#include "loop/torch/support/verified_plans.hpp"
#include "pipewright/loop/record/run_directory.hpp"
#include "pipewright/models/estimates/estimated_costs.hpp"
#include "pipewright/plan/generators/round_robin.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/generators/schedule_file.hpp"
#include "pipewright/plan/lower/program_csv.hpp"
#include "support/make_schedule.hpp"
#include "support/temp_folder.hpp"

namespace verify_custom_schedule_test {

using namespace pipewright;

/// A zero-bubble schedule written by hand, in which weight gradients are delayed and reordered.
const std::string by_hand =
    "0F0,0F1,0I0,0F2,0I1,0W1,0F3,0I2,0W0,0I3,0W3,0W2\n"
    "1F0,1I0,1F1,1I1,1F2,1W1,1I2,1F3,1I3,1W3,1W0,1W2\n";

plan::Scenario with_schedule(plan::ScheduleChoice choice) {
  plan::Scenario scenario = test::odd_scenario();
  scenario.pipeline.ranks = 2;
  scenario.pipeline.microbatches = 4;
  scenario.pipeline.schedule = std::move(choice);
  return scenario;
}

TEST_CASE("A user's schedule has the bits of serial training", "[loop]") {
  const plan::Schedule order = plan::parse_csv(by_hand, "by hand");
  const plan::Scenario plain = with_schedule(order);
  const plan::Program lowered = sim::lay_out(plain, test::odd_costs()).program();
  CHECK(sim::lay_out(plain, test::odd_costs()).schedule == order);
  const std::vector<plan::ScheduleChoice> forms{
      order, plan::schedule_from_text(by_hand, "by_hand.csv"),
      plan::schedule_from_text(to_csv(lowered), "lowered.csv"),
      plan::schedule_from_text(to_json(lowered).dump(), "program.json"), lowered};
  for (const plan::ScheduleChoice& form : forms) {
    INFO(form.name);
    test::check_verifies(with_schedule(form));
  }
}

TEST_CASE("A user's order trains with replicas, clipping and tensor parallelism", "[loop]") {
  for (const std::string& text :
       {by_hand, to_csv(plan::lower(plan::parse_csv(by_hand, "by hand")))}) {
    plan::Scenario scenario = with_schedule(plan::schedule_from_text(text, "mine.csv"));
    scenario.pipeline.replicas = 2;
    for (const int zero : {0, 1})
      for (const double clip : {0.0, 0.5}) {
        scenario.training.zero = zero;
        scenario.training.clip_norm = clip;
        INFO(fmt::format("zero {}, clip {}", zero, clip));
        test::check_verifies(scenario);
      }
  }
}

TEST_CASE("Stages with different numbers of replicas have the bits of serial training", "[loop]") {
  for (const auto& copies : std::vector<std::vector<int>>{{2, 1, 1}, {1, 2, 1}, {1, 2, 3}}) {
    plan::Scenario scenario = with_schedule(plan::make_1f1b_rr(copies, 6));
    scenario.pipeline.ranks = std::accumulate(copies.begin(), copies.end(), 0);
    scenario.pipeline.microbatches = 6;
    for (const int zero : {0, 1}) {
      scenario.training.zero = zero;
      INFO(fmt::format("copies {}, zero {}", fmt::join(copies, ","), zero));
      test::check_verifies(scenario);
    }
  }
}

TEST_CASE("A user's generator has the bits of serial training", "[loop]") {
  plan::ScheduleDescriptor mine;
  mine.name = "mine";
  mine.chunks = plan::Chunks::Two;
  mine.make = [](const plan::ScheduleRequest& r) -> plan::GeneratedSchedule {
    plan::Schedule schedule = test::make("zbv", r.ranks, r.microbatches, r.chunks);
    // Each rank moves its oldest weight gradient to the end.
    for (auto& actions : schedule.ranks) {
      const auto weight = std::find_if(actions.begin(), actions.end(), [](const auto& action) {
        return action.kind == plan::ActionKind::WeightGradient;
      });
      std::rotate(weight, weight + 1, actions.end());
    }
    return {schedule};
  };
  test::check_verifies(with_schedule(mine));
}

TEST_CASE("A run's folder contains the user's schedule", "[loop]") {
  const test::TempFolder folder;
  for (const bool whole : {false, true}) {
    plan::Scenario scenario = with_schedule(plan::parse_csv(by_hand, "by hand"));
    scenario.model.as<plan::GptShape>().vocabulary = 256;  // the only value that a file can have
    const plan::LayerCosts costs = models::estimated_costs(scenario);
    if (whole)
      scenario.pipeline.schedule = sim::lay_out(scenario, costs).program();
    const loop::Plan plan = loop::make_plan(scenario, costs);
    loop::RunDirectory directory(folder.path() / (whole ? "whole" : "order"), scenario.name);
    directory.write_plan(scenario, costs, plan);
    const loop::StoredRun run = loop::read_run(directory.path());
    CHECK(run.scenario.pipeline.schedule.label() == (whole ? "program.json" : "schedule.csv"));
    CHECK(sim::lay_out(run.scenario, run.costs).program() == run.program);
  }
}

}  // namespace verify_custom_schedule_test
