#include "pipewright/trace/files/timeline_file.hpp"

#include <fmt/format.h>

#include <fstream>
#include <tuple>

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/timeline/event_file.hpp"
#include "pipewright/plan/timeline/trace.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/large_timelines.hpp"
#include "support/temp_folder.hpp"

namespace pipewright::trace::timeline_file_test {

using test::error_of;
using test::TempFolder;

plan::Timeline two_ranks() {
  return {.name = "predicted",
          .ranks = 2,
          .length = {5},
          .spans = {{0, plan::Row::Compute, "0F0", {0}, {1}},
                    {0, plan::Row::Send, "0SEND_F0", {1}, {3}},
                    {1, plan::Row::Compute, "1F0", {3}, {4.1}}},
          .memory = {{0, {0}, {3}}, {1, {0}, {7}}},
          .idle = {{1, plan::IdleCause::WarmUp, {0}, {3}}},
          .critical = {0, 1, 2}};
}

const std::string torch_trace =
    R"({"traceEvents":[{"ph":"X","name":"PP:0F0","cat":"user_annotation","pid":9,"tid":9,"ts":5,)"
    R"("dur":2},{"ph":"X","name":"aten::mm","pid":9,"tid":9,"ts":5,"dur":1}]})";

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST_CASE("Timeline file: a trace of Pipewright is read back exactly under any name", "[loop]") {
  const TempFolder folder;
  std::vector<std::string> problems;
  for (const char* name : {"t.pwt", "t.json", "t.json.gz", "t.trace"}) {
    const auto file = folder.path() / name;
    write_timeline(file, two_ranks());
    const auto odd = folder.path() / "odd.name";
    std::filesystem::rename(file, odd);
    INFO(name);
    CHECK(read_timeline(odd, problems) == two_ranks());
    CHECK(timeline_of(read_timeline_file(odd, problems)) == two_ranks());
  }
  CHECK(problems.empty());
}

TEST_CASE("Timeline file: a truncated trace of Pipewright is read up to the cut", "[loop]") {
  const TempFolder folder;
  const std::string text = plan::to_trace(two_ranks());
  const auto file = folder.write("t.json", text.substr(0, text.find("1F0")));
  std::vector<std::string> problems;
  const auto table = read_timeline_file(file, problems);
  CHECK(table.size() == 2);
  REQUIRE(problems.size() == 2);
  CHECK(problems[0].find("not JSON") != std::string::npos);
  CHECK(problems[1].find("the file is cut off") != std::string::npos);
  // Figures of half a step would be wrong.
  CHECK(error_of([&] { read_timeline(file, problems); }).find("not JSON") != std::string::npos);
}

TEST_CASE("Timeline file: the actions of torch's trace are compared", "[loop]") {
  const TempFolder folder;
  std::vector<std::string> problems;
  const auto file = folder.write("t.json", torch_trace);
  CHECK(read_timeline_file(file, problems).size() == 3);
  const auto timeline = read_timeline(file, problems);
  REQUIRE(timeline.spans.size() == 1);
  CHECK(timeline.spans[0].action == "0F0");
  const auto none = folder.write("n.json", R"([{"ph":"X","name":"a","pid":9,"ts":5,"dur":2}])");
  CHECK(error_of([&] { read_timeline(none, problems); }).find("no actions of a pipeline") !=
        std::string::npos);
}

/// Returns the forward of microbatch 0 in two steps, the second of which takes longer, and in a
/// third.
std::string traced_steps(bool marked) {
  const auto event = [](const std::string& name, int start, int duration) {
    return fmt::format(R"({{"ph":"X","name":"{}","pid":9,"tid":9,"ts":{},"dur":{}}},)", name, start,
                       duration);
  };
  std::string text = "[";
  for (const auto& [step, start, length] : {std::tuple{1, 10, 10}, {2, 20, 30}, {3, 50, 20}}) {
    if (marked)
      text += event("ProfilerStep#" + std::to_string(step), start, length);
    text += event("PP:0F0", start + 2, length / 2) + event("PP:0B0", start + length - 3, 2);
  }
  return text + R"({"ph":"X","name":"set up","pid":9,"tid":9,"ts":0,"dur":1}])";
}

TEST_CASE("Timeline file: the median of several marked steps is compared", "[loop]") {
  const TempFolder folder;
  std::vector<std::string> problems;
  const auto timeline = read_timeline(folder.write("t.json", traced_steps(true)), problems);
  CHECK(timeline.length.value == Approx(20e-6));
  REQUIRE(timeline.spans.size() == 2);
  CHECK(timeline.spans[0].start.value == Approx(2e-6));
  CHECK(timeline.spans[0].end.value == Approx(12e-6));
  CHECK(timeline.spans[1].action == "0B0");
}

TEST_CASE("Timeline file: several steps without marks are not compared", "[loop]") {
  const TempFolder folder;
  std::vector<std::string> problems;
  const auto file = folder.write("t.json", traced_steps(false));
  CHECK(error_of([&] { read_timeline(file, problems); }).find("rank 0 runs 0F0 more than once") !=
        std::string::npos);
}

TEST_CASE("Timeline file: an iteration without marks begins with its first action", "[loop]") {
  const TempFolder folder;
  std::vector<std::string> problems;
  const auto timeline = read_timeline(
      folder.write("t.json", R"([{"ph":"X","name":"set up","pid":9,"tid":9,"ts":0,"dur":7},)"
                             R"({"ph":"X","name":"PP:0F0","pid":9,"tid":9,"ts":10,"dur":5},)"
                             R"({"ph":"X","name":"PP:0B0","pid":9,"tid":9,"ts":20,"dur":5}])"),
      problems);
  CHECK(timeline.length.value == Approx(15e-6));
  CHECK(timeline.spans.front().start.value == Approx(0));
}

TEST_CASE("Timeline file: a file without a timeline is rejected with the supported formats",
          "[loop]") {
  const TempFolder folder;
  std::vector<std::string> problems;
  const auto refusal = [&](const std::string& text) {
    return error_of([&] { read_timeline_file(folder.write("x", text), problems); });
  };
  for (const std::string& text :
       std::vector<std::string>{"", "hello", "0F0,0B0\n", "\x1f\x8bnot gzip",
                                "\x7f"
                                "ELF"})
    CHECK(refusal(text).find("a timeline is needed: one of Pipewright (.pwt") != std::string::npos);
  CHECK(refusal(R"({"format":"pipewright/program/1","ranks":[]})")
            .find("this is a program; a time") != std::string::npos);
  CHECK(refusal("{}").find("no list \"traceEvents\"") != std::string::npos);
  CHECK(refusal("\x89PWT\n\x1a\n").find("not a Pipewright timeline file") != std::string::npos);
  CHECK(error_of([&] { read_timeline_file("/nowhere", problems); }).find("cannot be read") !=
        std::string::npos);
}

TEST_CASE("Timeline file: torch's trace is converted to every format and back", "[loop]") {
  const TempFolder folder;
  std::vector<std::string> problems;
  const auto table = read_timeline_file(folder.write("t.json", torch_trace), problems);
  for (const char* name : {"o.pwt", "o.json", "o.json.gz"}) {
    write_timeline_file(folder.path() / name, table);
    const auto again = read_timeline_file(folder.path() / name, problems);
    INFO(name);
    CHECK(again.tracks == table.tracks);
    CHECK(again.size() == table.size());
    CHECK(again.name_at(1) == "PP:0F0");
    CHECK(read_timeline(folder.path() / name, problems).spans[0].action == "0F0");
  }
  CHECK(problems.empty());
}

TEST_CASE("Timeline file: CSV has a line for each event", "[loop]") {
  const TempFolder folder;
  plan::Timeline timeline = two_ranks();
  timeline.spans[0].action = "a \"b\", c";
  write_timeline_file(folder.path() / "t.csv", table_of(timeline));
  CHECK(text_of(folder.path() / "t.csv") ==
        "rank,track,depth,action,start_s,end_s\n"
        "0,compute,0,\"a \"\"b\"\", c\",0,1\n"
        "0,send,0,0SEND_F0,1,3\n"
        "1,compute,0,1F0,3,4.1\n");
}

TEST_CASE("Timeline file: only legible pictures are written, and unknown suffixes are rejected",
          "[loop]") {
  const TempFolder folder;
  write_timeline_file(folder.path() / "t.svg", table_of(two_ranks()));
  CHECK(text_of(folder.path() / "t.svg").find("</svg>") != std::string::npos);
  CHECK(error_of([&] {
          write_timeline_file(folder.path() / "t.svg", test::made_up_events(30'000, 2));
        }).find("30000 events are too many for a picture") != std::string::npos);
  CHECK(error_of([&] {
          write_timeline_file(folder.path() / "t.png", table_of(two_ranks()));
        }).find(".pwt, .json, .json.gz, .csv or .svg") != std::string::npos);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

}  // namespace pipewright::trace::timeline_file_test
