// Scenarios with a custom schedule, or with a schedule's name and its options.

#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/make_schedule.hpp"
#include "support/temp_folder.hpp"

namespace custom_schedule_test {

using namespace pipewright::plan;
using pipewright::test::error_of;
using pipewright::test::make;
using pipewright::test::TempFolder;

/// Returns a scenario with the given pipeline fields.
std::string text_with(const std::string& pipeline) {
  return R"({"format": "pipewright/scenario/1", "name": "small",
"model": {"kind": "gpt", "blocks": 6},
"data": {"kind": "text", "path": "text.txt"},
"cluster": {"name": "c", "nodes": 1, "devices_per_node": 2, "device": {"name": "cpu"},
  "within_node": {"latency_s": 0, "bandwidth_per_s": 1e12}},
"pipeline": {)" +
         pipeline + R"(},
"training": {"steps": 1, "microbatch_size": 4}})";
}

Scenario read(const TempFolder& folder, const std::string& pipeline) {
  return scenario_from_json(JsonDocument::read(folder.write("scenario.json", text_with(pipeline))));
}

TEST_CASE("A schedule's file is found next to the scenario", "[plan][scenario]") {
  const TempFolder folder;
  const Schedule order = make("zb-h1", 2, 4);
  const auto file = folder.write("mine.csv", to_csv(order));
  const Scenario scenario =
      read(folder, R"("ranks": 2, "microbatches": 4, "schedule": "mine.csv")");
  CHECK(scenario.pipeline.schedule.name == file.string());
  CHECK(scenario.pipeline.schedule.label() == "mine.csv");
  const ScheduleRequest request = request_of(scenario.pipeline);
  CHECK(make_training_schedule(request) == order);  // weight gradients keep their order
  ScheduleRequest named = request;
  named.name = "zb-h1";
  named.own = nullptr;
  CHECK(make_training_schedule(named) != order);
  CHECK(scenario_from_json(JsonDocument::parse(to_json(scenario).dump(), "else/where.json")) ==
        scenario);
}

TEST_CASE("A change of a scenario does not read files again, and keeps a generator",
          "[plan][scenario]") {
  const TempFolder folder;
  const auto file = folder.write("mine.csv", to_csv(make("gpipe", 2, 4)));
  Scenario scenario = read(folder, R"("ranks": 2, "microbatches": 4, "schedule": "1f1b")");
  scenario = changed(scenario, "pipeline.schedule=" + file.string());
  std::filesystem::remove(file);
  const Scenario next = changed(scenario, "pipeline.replicas=2");
  CHECK(next.pipeline.schedule.own == scenario.pipeline.schedule.own);
  CHECK_FALSE(changed(next, "pipeline.schedule=gpipe").pipeline.schedule.own);

  ScheduleDescriptor mine;
  mine.name = "mine";
  mine.make = [](const ScheduleRequest& r) -> GeneratedSchedule {
    return {make("gpipe", r.ranks, r.microbatches)};
  };
  scenario.pipeline.schedule = mine;
  const Scenario larger = changed(changed(scenario, "pipeline.ranks=3"), "pipeline.microbatches=5");
  CHECK(make_schedule(request_of(larger.pipeline)) == make("gpipe", 3, 5));
}

TEST_CASE("A file for other sizes is rejected with both numbers and a fix", "[plan][scenario]") {
  const TempFolder folder;
  folder.write("mine.csv", to_csv(make("interleaved-1f1b", 2, 4, 2)));
  const auto refusal = [&](const std::string& pipeline) {
    const std::string error = error_of([&] { read(folder, pipeline); });
    return error.substr(error.find('/', error.find(".json:")));
  };
  CHECK(refusal(R"("ranks": 3, "microbatches": 4, "schedule": "mine.csv")") ==
        "/pipeline/ranks: mine.csv is for 2 ranks, but 3 are asked for: pipeline.ranks=2 fits");
  CHECK(refusal(R"("ranks": 2, "microbatches": 5, "schedule": "mine.csv")") ==
        "/pipeline/microbatches: mine.csv is for 4 microbatches, but 5 are asked for: "
        "pipeline.microbatches=4 fits");
  CHECK(refusal(R"("ranks": 2, "microbatches": 4, "chunks": 3, "schedule": "mine.csv")") ==
        "/pipeline/chunks: mine.csv has 4 stages on 2 ranks, but 3 for each rank are asked for: "
        "pipeline.chunks=0 fits");
  CHECK(read(folder, R"("ranks": 2, "microbatches": 4, "chunks": 2, "schedule": "mine.csv")")
            .pipeline.chunks == 2);
  CHECK(refusal(R"("ranks": 2, "microbatches": 4, "schedule": "none.csv")")
            .find("none.csv: there is no such file") != std::string::npos);
  folder.write("bad.csv", "0F0,0Q0\n");
  CHECK(refusal(R"("ranks": 2, "microbatches": 4, "schedule": "bad.csv")")
            .find("bad.csv:1:2: \"0Q0\" is not an action") != std::string::npos);
  CHECK(refusal(R"("ranks": 2, "microbatches": 4, "schedule": "1f1")")
            .find("/pipeline/schedule: \"1f1\" is not known here, did you mean \"1f1b\"?") == 0);
}

TEST_CASE("A Program sets the communication options that a scenario omits", "[plan][scenario]") {
  const TempFolder folder;
  const Program program = lower(make("1f1b", 2, 4), {.communicators = CommunicatorLayout::Pair,
                                                     .transfers = TransferMode::Rendezvous,
                                                     .blocking = true});
  folder.write("program.json", to_json(program).dump());
  const Pipeline silent =
      read(folder, R"("ranks": 2, "microbatches": 4, "schedule": "program.json")").pipeline;
  CHECK(silent.communicators == CommunicatorLayout::Pair);
  CHECK(silent.transfers == TransferMode::Rendezvous);
  CHECK(silent.blocking);
  const Pipeline other = read(folder, R"("ranks": 2, "microbatches": 4, "schedule": "program.json",
                      "communicators": "rank")")
                             .pipeline;
  CHECK(other.communicators == CommunicatorLayout::Rank);  // rejected when it is lowered
}

TEST_CASE("A schedule's name is passed with its options", "[plan][scenario]") {
  const TempFolder folder;
  const auto request = [&](const std::string& pipeline) {
    return request_of(read(folder, pipeline).pipeline);
  };
  const auto grouped = request(
      R"("ranks": 2, "microbatches": 6, "chunks": 2, "schedule": "megatron-interleaved", "group": 3)");
  CHECK(grouped.group == 3);
  CHECK(make_schedule(grouped) != make("megatron-interleaved", 2, 6, 2));
  const auto placed =
      request(R"("ranks": 2, "microbatches": 3, "schedule": "1f1b", "placement": [0, 0, 1])");
  CHECK(stage_count(placed) == 3);
  CHECK(make_schedule(placed).ranks[0].size() == 12);
  CHECK(request(R"("ranks": 2, "microbatches": 3, "schedule": "v-zb", "memory_units": 5)")
            .memory_units == 5);
  CHECK_FALSE(request(R"("ranks": 2, "microbatches": 3, "schedule": "v-zb")").memory_units);
  CHECK(error_of([&] {
          request(R"("ranks": 3, "microbatches": 3, "schedule": "1f1b", "placement": [0, 0, 1])");
        }).find("/pipeline/placement: it has ranks 0 to 1, but pipeline.ranks is 3") !=
        std::string::npos);
}

TEST_CASE("Choosing another schedule drops options that it does not take", "[plan][scenario]") {
  Pipeline pipeline{.schedule = "v-zb", .group = 3, .memory_units = 5, .placement = {0, 1}};
  choose_schedule(pipeline, "zb-auto");
  CHECK(pipeline == Pipeline{.schedule = "zb-auto", .memory_units = 5});
  choose_schedule(pipeline, "1f1b");
  CHECK(pipeline == Pipeline{});
}

}  // namespace custom_schedule_test
