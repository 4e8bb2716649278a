// A scenario with a user-defined schedule is planned like one of the same name.

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/lower/program_csv.hpp"
#include "pipewright/plan/schedules/schedule_counts.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "pipewright/sim/scenario/scenario_plan.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace custom_schedule_plan_test {

using namespace pipewright::plan;
using namespace pipewright::sim;
using pipewright::test::error_of;
using pipewright::test::TempFolder;

const std::string folder = PIPEWRIGHT_SOURCE_DIR "/scenarios/shared-card/";

Scenario shared_card(const std::vector<std::string>& assignments = {}) {
  auto document = JsonDocument::read(folder + "scenario.json");
  for (const std::string& assignment : assignments)
    document.set(assignment);
  return scenario_from_json(document);
}

LayerCosts costs() { return layer_costs_from_json(JsonDocument::read(folder + "costs.json")); }

/// Returns the same scenario with the schedule from a file of that text.
Scenario from_file(const TempFolder& files, Scenario scenario, const std::string& text) {
  return changed(scenario, "pipeline.schedule=" + files.write("mine.csv", text).string());
}

double iteration_of(const ScenarioPlan& plan) {
  return Simulator(*plan.structure).run_shared(plan.costs).iteration;
}

TEST_CASE("Each schedule read from its file is the Program of its name, including the timeline",
          "[sim][scenario]") {
  const TempFolder files;
  int checked = 0;
  for (const ScheduleDescriptor& entry : schedules()) {
    if (!entry.trains_batch())
      continue;
    INFO(entry.name);
    const std::string chunks = entry.chunks == Chunks::One ? "1" : "2";
    const Scenario named =
        shared_card({"pipeline.schedule=" + entry.name, "pipeline.microbatches=8",
                     "pipeline.chunks=" + chunks, "training.clip_norm=1"});
    const ScenarioPlan plan = lay_out(named, costs());
    for (const std::string& text :
         {to_csv(plan.schedule), to_csv(plan.program()), to_json(plan.program()).dump()}) {
      const ScenarioPlan own = lay_out(from_file(files, named, text), costs());
      CHECK(own.program() == plan.program());
      CHECK(own.schedule == plan.schedule);
      CHECK(iteration_of(own) == iteration_of(plan));
      ++checked;
    }
  }
  CHECK(checked > 50);
}

TEST_CASE("A user's own schedule is kept as one structure", "[sim][scenario]") {
  Scenario scenario = shared_card();
  const Program program = lay_out(scenario, costs()).program();
  scenario.pipeline.schedule = program;
  StructureCache cache;
  const auto first = lay_out(scenario, costs(), &cache).structure;
  scenario.training.learning_rate = 1;
  CHECK(lay_out(scenario, costs(), &cache).structure == first);
  scenario.pipeline.schedule = lay_out(shared_card({"pipeline.schedule=gpipe"}), costs()).program();
  CHECK(lay_out(scenario, costs(), &cache).structure != first);
}

TEST_CASE("A Program that contradicts a field of the scenario is rejected", "[sim][scenario]") {
  Scenario scenario = shared_card();
  scenario.pipeline.schedule = lay_out(scenario, costs()).program();
  CHECK_NOTHROW(sound_program(scenario));
  const auto refusal = [&](const std::string& assignment) {
    return error_of([&] { sound_program(changed(scenario, assignment)); });
  };
  CHECK(refusal("pipeline.communicators=rank").find("/communicators: is edge, but") !=
        std::string::npos);
  CHECK(refusal("training.zero=1").find("has no GATHER") != std::string::npos);
  CHECK(refusal("training.clip_norm=1").find("has no NORM") != std::string::npos);
  CHECK(refusal("training.recompute=full").find("recomputes nothing") != std::string::npos);
  CHECK(refusal("pipeline.ranks=2").find("own is for 4 ranks, but 2 are asked for") !=
        std::string::npos);
}

TEST_CASE("A user's own generator is swept like one of the catalog", "[sim][scenario]") {
  ScheduleDescriptor mine;
  mine.name = "mine";
  mine.make = [](const ScheduleRequest& r) -> GeneratedSchedule {
    return {make_schedule("gpipe", r.ranks, r.microbatches)};
  };
  Scenario scenario = shared_card();
  scenario.pipeline.schedule = mine;
  for (const int microbatches : {4, 9}) {
    const std::string field = fmt::format("pipeline.microbatches={}", microbatches);
    CHECK(iteration_of(lay_out(changed(scenario, field), costs())) ==
          iteration_of(lay_out(shared_card({"pipeline.schedule=gpipe", field}), costs())));
  }
}

TEST_CASE("A limit in a scenario is that of its schedule", "[sim][scenario]") {
  const auto highest_peak = [](const std::string& units) {
    const auto peaks = peak_memory_units(
        lay_out(shared_card({"pipeline.schedule=zb-auto", "pipeline.memory_units=" + units}),
                costs())
            .schedule);
    return *std::max_element(peaks.begin(), peaks.end());
  };
  CHECK(highest_peak("4") == 4);
  CHECK(highest_peak("2") == 2);
}

}  // namespace custom_schedule_plan_test
