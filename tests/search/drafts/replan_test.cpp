#include "pipewright/search/drafts/replan.hpp"

#include <fstream>

#include "search/support/drafts.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace replan_test {

using namespace pipewright;
using search::devices_left;
using search::Draft;
using test::error_of;
using test::shared_card;

Draft job(int ranks, int replicas) {
  return shared_card(
      {"pipeline.ranks=" + std::to_string(ranks), "pipeline.replicas=" + std::to_string(replicas)});
}

TEST_CASE("The remainder of a job has no lost device, and the speeds of the remaining ones",
          "[loop][replan]") {
  const search::DevicesLeft left =
      devices_left(job(2, 2).scenario, {.lost = {1}, .slow = {{2, 0.5}}});
  CHECK(left.ranks == std::vector{0, 2, 3});
  CHECK(left.speeds == std::vector{1.0, 0.5, 1.0});
}

TEST_CASE("A slow rank that a scenario knows gets slower still", "[loop][replan]") {
  Draft draft = job(2, 1);
  draft.scenario.cluster.rank_speeds = {1, 0.5};
  CHECK(devices_left(draft.scenario, {.slow = {{1, 0.5}}}).speeds == std::vector{1.0, 0.25});
}

TEST_CASE("Impossible failures are rejected with an error message", "[loop][replan]") {
  const plan::Scenario scenario = job(2, 1).scenario;
  CHECK(error_of([&] { devices_left(scenario, {.lost = {2}}); }) ==
        "--lost 2: the job's ranks are 0 to 1");
  CHECK(error_of([&] {
          devices_left(scenario, {.slow = {{-1, 0.5}}});
        }) == "--slow -1: the job's ranks are 0 to 1");
  CHECK(error_of([&] {
          devices_left(scenario, {.lost = {0}, .slow = {{0, 0.5}}});
        }) == "rank 0 is given as both lost and slow: choose one");
  CHECK(error_of([&] {
          devices_left(scenario, {.slow = {{0, 1.5}}});
        }) == "--slow 0=1.5: the relative speed must be above 0 and at most 1");
  CHECK(error_of([&] {
          devices_left(scenario, {.lost = {0, 1}});
        }) == "every rank is lost: no device is left to plan for");
}

TEST_CASE("A rank reads the layers that its device did not hold, and no others", "[loop][replan]") {
  Draft before = job(2, 1);
  const int layers = static_cast<int>(before.costs->layers.size());
  before.scenario.pipeline.schedule = "1f1b";
  before.scenario.pipeline.chunks = 1;
  before.scenario.pipeline.partition = std::vector{0, 2, layers};
  search::DraftPlan after{
      .draft = before, .devices = {0}, .figures = {}, .boundaries = {0, layers}};
  after.draft.scenario.pipeline.ranks = 1;
  after.draft.scenario.pipeline.partition = std::vector{0, layers};
  const auto moves = moves_to(before, after, devices_left(before.scenario, {.lost = {0}}));
  REQUIRE(moves.size() == 1);
  CHECK(moves[0].was == 1);
  CHECK(moves[0].layers == std::vector{0, 1});
  // AdamW in full precision: a parameter and its two moments.
  CHECK(moves[0].bytes.value ==
        3 * (before.costs->layers[0].parameters.value + before.costs->layers[1].parameters.value));
}

TEST_CASE("The newest step is the one with the highest number that has a manifest",
          "[loop][replan]") {
  const test::TempFolder folder;
  CHECK_FALSE(search::newest_step(folder.path()));
  for (const char* name : {"step_00000009", "step_00000010", "step_00000011", "step_x", "other"})
    std::filesystem::create_directories(folder.path() / name);
  for (const char* name : {"step_00000009", "step_00000010", "other"})
    std::ofstream(folder.path() / name / "manifest.json") << "12345";
  const auto newest = search::newest_step(folder.path());
  REQUIRE(newest);
  CHECK(newest->step == 10);
  CHECK(newest->bytes.value == 5);
  CHECK(error_of([&] {
          search::newest_step(folder.path() / "none");
        }).find("none: cannot be read") != std::string::npos);
}

}  // namespace replan_test
