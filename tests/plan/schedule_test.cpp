#include "pipewright/plan/schedule.hpp"

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <tuple>

#include "pipewright/plan/schedules.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

using namespace pipewright::plan;
using pipewright::test::error_of;

namespace {

/// P and M.
using Sizes = std::pair<int, int>;

std::vector<Sizes> grid() {
  std::vector<Sizes> sizes;
  for (const int stages : {1, 2, 3, 4, 6, 8, 16})
    for (const int microbatches : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 32, 64})
      sizes.push_back({stages, microbatches});
  return sizes;
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, ',');)
    cells.push_back(cell);
  return cells;
}

/// The rows of a reference file as schedules in torch's dialect: one row a rank.
std::map<Sizes, std::string> read_reference(std::istream& in) {
  std::map<Sizes, std::map<int, std::string>> rows;
  std::string line;
  std::getline(in, line);
  REQUIRE(line == "schedule,peer,peer_version,P,M,V,rank,step_index,action");
  while (std::getline(in, line)) {
    const auto cells = cells_of(line);
    const std::string action = cells.size() > 8 ? cells[8] : "";  // empty: an idle slot
    std::string& row = rows[{std::stoi(cells[3]), std::stoi(cells[4])}][std::stoi(cells[6])];
    row += (row.empty() ? "" : ",") + action;
  }
  std::map<Sizes, std::string> schedules;
  for (const auto& [sizes, ranks] : rows)
    for (const auto& rank : ranks)
      schedules[sizes] += rank.second + "\n";
  return schedules;
}

/// Skips, with a warning, where torch's schedules are not at hand.
void check_against_torch(const std::string& name, Schedule (*make)(int, int)) {
  const auto file =
      std::filesystem::path(PIPEWRIGHT_REFERENCE_DIR) / "schedules" / ("torch_" + name + ".csv");
  std::ifstream in(file);
  if (!in) {
    WARN("skipped: there are no reference schedules " << file.string());
    return;
  }
  int compared = 0;
  for (const auto& [sizes, text] : read_reference(in)) {
    const auto [stages, microbatches] = sizes;
    CAPTURE(stages, microbatches);
    CHECK(make(stages, microbatches) == parse_csv(text, name));
    ++compared;
  }
  CHECK(compared > 0);
}

}  // namespace

TEST_CASE("1F1B: the first of two ranks runs one forward ahead", "[plan][schedule]") {
  CHECK(to_string(make_1f1b(2, 3)) ==
        "0F0 0F1 0B0 0F2 0B1 0B2\n"  // warm-up: 0F0, cool-down: 0B2
        "1F0 1B0 1F1 1B1 1F2 1B2\n");
}

TEST_CASE("1F1B with fewer microbatches than ranks is all warm-up and cool-down at first",
          "[plan][schedule]") {
  CHECK(to_string(make_1f1b(4, 2)) ==
        "0F0 0F1 0B0 0B1\n"
        "1F0 1F1 1B0 1B1\n"
        "2F0 2F1 2B0 2B1\n"
        "3F0 3B0 3F1 3B1\n");
}

TEST_CASE("GPipe runs all forwards, then all backwards", "[plan][schedule]") {
  CHECK(to_string(make_gpipe(2, 3)) ==
        "0F0 0F1 0F2 0B0 0B1 0B2\n"
        "1F0 1F1 1F2 1B0 1B1 1B2\n");
}

TEST_CASE("GPipe is torch's, action for action", "[plan][schedule]") {
  check_against_torch("GPipe", make_gpipe);
}

TEST_CASE("1F1B is torch's, action for action", "[plan][schedule]") {
  check_against_torch("1F1B", make_1f1b);
}

TEST_CASE("Every generated schedule is valid", "[plan][schedule]") {
  for (const std::string& name : schedule_names())
    for (const auto& [stages, microbatches] : grid()) {
      const Schedule schedule = make_schedule(name, stages, microbatches);
      CAPTURE(name, stages, microbatches);
      REQUIRE(error_of([&] { validate(schedule); }) == "no error");
      REQUIRE(schedule.microbatches == microbatches);
      REQUIRE(stage_count(schedule) == stages);
    }
}

TEST_CASE("One stage a rank, in order", "[plan][schedule]") {
  CHECK(rank_of_stage(make_1f1b(4, 2)) == std::vector<int>{0, 1, 2, 3});
  CHECK(rank_of_stage(parse_csv("0F0,3F0\n2F0\n", "s.csv")) == std::vector<int>{0, -1, 1, 0});
}

TEST_CASE("A schedule is found by name in any case", "[plan][schedule]") {
  CHECK(schedule_names() == std::vector<std::string>{"gpipe", "1f1b"});
  CHECK(make_schedule("GPipe", 2, 3) == make_gpipe(2, 3));
  CHECK(make_schedule("1F1B", 2, 3) == make_1f1b(2, 3));
  CHECK(error_of([] { make_schedule("1f1", 2, 3); }) ==
        "no schedule is called \"1f1\", did you mean \"1f1b\"? (known: gpipe or 1f1b)");
}

TEST_CASE("A schedule without stages or microbatches is refused in words", "[plan][schedule]") {
  CHECK(error_of([] { make_gpipe(0, 4); }) == "gpipe: 0 stages asked for, the least is 1");
  CHECK(error_of([] { make_gpipe(4, 0); }) == "gpipe: 0 microbatches asked for, the least is 1");
  CHECK(error_of([] { make_1f1b(-1, 4); }) == "1f1b: -1 stages asked for, the least is 1");
  CHECK(error_of([] { make_1f1b(4, -2); }) == "1f1b: -2 microbatches asked for, the least is 1");
}

TEST_CASE("A schedule file has one row a rank", "[plan][schedule]") {
  CHECK(to_csv(make_1f1b(2, 3)) ==
        "0F0,0F1,0B0,0F2,0B1,0B2\n"
        "1F0,1B0,1F1,1B1,1F2,1B2\n");
}

TEST_CASE("A schedule reads back from CSV as it was written", "[plan][schedule]") {
  for (const auto& [stages, microbatches] : grid()) {
    const Schedule schedule = make_1f1b(stages, microbatches);
    CAPTURE(stages, microbatches);
    REQUIRE(parse_csv(to_csv(schedule), "s.csv") == schedule);
  }
}

TEST_CASE("Empty cells are idle slots, quotes and line ends of any system are taken",
          "[plan][schedule]") {
  const Schedule read = parse_csv("0F0,,,0B0,\r\n ,\"1F0\", 1B0\r\n", "s.csv");
  CHECK(to_string(read) == "0F0 0B0\n1F0 1B0\n");
  CHECK(read.microbatches == 1);
  CHECK(parse_csv("0F0,0B0", "s.csv") == make_gpipe(1, 1));
}

TEST_CASE("A schedule file's errors name row and column, all at once", "[plan][schedule]") {
  CHECK(error_of([] { parse_csv("0F0,0G0,0B0\n1F0,F1,,1B0 1\n", "s.csv"); }) ==
        "s.csv:1:2: \"0G0\" is no action: write stage, one of F B I W R, microbatch, such as 3F0\n"
        "s.csv:2:2: \"F1\" is no action: write stage, one of F B I W R, microbatch, such as 3F0\n"
        "s.csv:2:4: \"1B0 1\" is no action: write stage, one of F B I W R, microbatch, such as "
        "3F0");
}

TEST_CASE("A schedule file without an action is refused", "[plan][schedule]") {
  CHECK(error_of([] { parse_csv("", "s.csv"); }) == "s.csv:1:1: no action in the file");
  CHECK(error_of([] { parse_csv(",,\n\n", "s.csv"); }) == "s.csv:1:1: no action in the file");
}
