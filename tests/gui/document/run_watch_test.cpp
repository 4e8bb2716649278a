#include "pipewright/gui/document/run_watch.hpp"

#include <fstream>

#include "pipewright/gui/document/notes.hpp"
#include "support/catch.hpp"
#include "support/temp_folder.hpp"

namespace run_watch_test {

using namespace pipewright;
using gui::band_of;
using loop::StepLine;
using test::TempFolder;

std::vector<StepLine> steps_of(const std::vector<double>& seconds) {
  std::vector<StepLine> steps;
  for (const double s : seconds)
    steps.push_back({static_cast<int>(steps.size()), 20, 1, s, 1, "tokens"});
  return steps;
}

plan::EventTable busy(double first, double second) {
  return plan::table_of({.name = "step",
                         .ranks = 2,
                         .length = {1},
                         .spans = {{0, plan::Row::Compute, "0F0", {0}, {first}},
                                   {1, plan::Row::Compute, "1F0", {0}, {second}}},
                         .memory = {}});
}

TEST_CASE("The band is as wide as the machine's drift, and at least 5 %", "[gui][run]") {
  CHECK(band_of(1, 0.2) == gui::PredictedBand{1, 0.8, 1.2});
  CHECK(band_of(2, 0) == gui::PredictedBand{2, 1.9, 2.1});
}

TEST_CASE("An alarm names the rank that is slower than predicted", "[gui][run]") {
  const auto predicted = busy(0.5, 0.5), measured = busy(0.5, 0.75);
  const auto alarm =
      alarm_of(band_of(1, 0), steps_of({9, 9, 1.5, 1.5, 1.5}), &predicted, &measured);
  REQUIRE(alarm);
  CHECK(alarm->rank == 1);
  CHECK(alarm->text ==
        "A step takes 1.500 s, and 950.0 ms to 1.050 s were predicted: rank 1 computes 50 % "
        "longer than predicted");
}

TEST_CASE("A slow rank reported by the training is an alarm even within the band", "[gui][run]") {
  auto steps = steps_of({9, 9, 1, 1, 1});
  steps.back().slow = "rank 1 is slow: it computes for 0.2 s";
  const auto alarm = alarm_of(band_of(1, 0), steps, nullptr, nullptr);
  REQUIRE(alarm);
  CHECK(alarm->text == "rank 1 is slow: it computes for 0.2 s");
  steps.push_back({5, 20, 1, 1, 1, "tokens"});
  CHECK_FALSE(alarm_of(band_of(1, 0), steps, nullptr, nullptr));
}

TEST_CASE("There is no alarm during warm-up, for one slow step, or within the band", "[gui][run]") {
  CHECK_FALSE(alarm_of(band_of(1, 0), steps_of({9, 9, 9, 9}), nullptr, nullptr));
  CHECK_FALSE(alarm_of(band_of(1, 0), steps_of({9, 9, 1, 1, 1, 5, 1}), nullptr, nullptr));
  CHECK_FALSE(alarm_of(band_of(1, 0), steps_of({9, 9, 1.04, 0.96, 1}), nullptr, nullptr));
}

TEST_CASE("Steps repeated by a resumed training replace the first ones", "[gui][run]") {
  const TempFolder folder;
  std::string lines;
  for (const int step : {0, 1, 2, 1, 2, 3})
    lines += to_line(StepLine{step, 20, 1, 0.5, 1, "tokens"}) + "\n";
  folder.write("steps.jsonl", lines);
  gui::RunWatch watch(folder.path());
  CHECK(watch.look());
  CHECK(watch.steps().size() == 4);
  CHECK_FALSE(watch.look());
}

TEST_CASE("Notes are stored next to their file, which is removed with the last note",
          "[gui][notes]") {
  const TempFolder folder;
  const auto file = gui::notes_file(folder.path() / "run/");
  CHECK(file == folder.path() / "run.notes.json");
  const std::vector<gui::Note> notes{{0.5, 1, "why?"}, {0.75, -1, "two\nlines"}};
  std::vector<std::string> problems;
  gui::write_notes(file, notes);
  CHECK(gui::read_notes(file, problems) == notes);
  gui::write_notes(file, {});
  CHECK_FALSE(std::filesystem::exists(file));
  folder.write("run.notes.json",
               R"({"format": "pipewright/notes/1", "notes": [{"time_s": 1}, 3]})");
  CHECK(gui::read_notes(file, problems).empty());
  CHECK(problems.size() == 2);
}

}  // namespace run_watch_test
