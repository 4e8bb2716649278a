#include "pipewright/trace/files/thread_rows.hpp"

#include <fmt/format.h>

#include "pipewright/plan/timeline/event_file.hpp"
#include "pipewright/plan/timeline/timeline_facts.hpp"
#include "pipewright/trace/files/timeline_file.hpp"
#include "support/catch.hpp"
#include "support/temp_folder.hpp"

namespace pipewright::trace::thread_rows_test {

using test::TempFolder;

plan::EventTable stored(const std::string& name) {
  std::vector<std::string> problems;
  plan::EventTable table = read_timeline_file(PIPEWRIGHT_TEST_DATA_DIR "/traces/" + name, problems);
  CHECK(problems.empty());
  return table;
}

/// Returns "name: event start-end, …" in µs, with a line for each track; nested tracks are
/// indented.
std::string shown(const plan::EventTable& table) {
  std::string text;
  for (const plan::EventTrack& track : table.tracks) {
    text += std::string(static_cast<std::size_t>(track.depth) * 2, ' ') +
            rank_name(table, track.rank) + ":";
    for (std::uint64_t event = track.begin; event < track.end; ++event)
      text += fmt::format(" {} {:g}-{:g}", table.name_at(event), table.start[event] * 1e6,
                          table.end[event] * 1e6);
    text += '\n';
  }
  return text;
}

TEST_CASE("Thread rows: each thread has a row named after its process and itself", "[loop]") {
  const plan::EventTable rows = with_thread_rows(stored("workers.json"));
  CHECK(rows.rank_names ==
        std::vector<std::string>{"DP rank [0], steps", "DP rank [0], PP rank 0, TP rank 0, compute",
                                 "DP rank [0], PP rank 0, TP rank 0, pp-comm",
                                 "DP rank [0], PP rank 1, TP rank 0, compute",
                                 "DP rank [0], PP rank 1, TP rank 0, pp-comm", "DP rank [1], steps",
                                 "DP rank [1], PP rank 0, TP rank 0, compute",
                                 "DP rank [1], PP rank 0, TP rank 0, pp-comm",
                                 "DP rank [1], PP rank 1, TP rank 0, compute",
                                 "DP rank [1], PP rank 1, TP rank 0, pp-comm"});
  const plan::TimelineFacts facts = plan::facts_of(rows);
  REQUIRE(facts.steps.size() == 3);
  CHECK(facts.steps[0].number == 23);
  CHECK(facts.steps[1].start.value == Approx(1500e-6));
  CHECK(facts.typical_step()->length().value == Approx(1200e-6));
}

TEST_CASE("Thread rows: torch's step marks have a row next to their threads", "[loop]") {
  CHECK(shown(with_thread_rows(stored("torch-steps.json"))) ==
        "steps: ProfilerStep#5 0-100 ProfilerStep#6 110-210 ProfilerStep#7 220-360\n"
        "steps on the device: ProfilerStep#5 20-110 ProfilerStep#6 130-220 ProfilerStep#7 240-370\n"
        "GPU 0, stream 7 : sgemm 30-80 sgemm 140-190 sgemm 250-300\n"
        "CPU, thread 4242 (python): aten::linear 10-50 aten::linear 120-160 aten::linear 230-270\n"
        "  CPU, thread 4242 (python): aten::addmm 15-45 aten::addmm 125-155 aten::addmm 235-265\n"
        "    CPU, thread 4242 (python): cudaLaunchKernel 20-25 cudaLaunchKernel 130-135 "
        "cudaLaunchKernel 240-245\n");
  const plan::TimelineFacts facts = plan::facts_of(stored("torch-steps.json"));
  REQUIRE(facts.steps.size() == 3);
  CHECK(facts.steps[2].number == 7);
  CHECK(facts.typical_step()->length().value == Approx(100e-6));
}

TEST_CASE("Thread rows: NVTX ranges of iterations are steps", "[loop]") {
  const plan::EventTable rows = with_thread_rows(stored("nsys-ranges.json"));
  CHECK(shown(rows) ==
        "process Device 0, thread Stream 7: sgemm 12-32 sgemm 62-82\n"
        "process Host, steps: iteration 0 0-40 iteration 1 50-90\n"
        "process Host, thread CUDA API: cudaLaunchKernel 5-10 cudaLaunchKernel 55-60\n");
  CHECK(plan::facts_of(rows).steps.size() == 2);
}

TEST_CASE("Thread rows: a trace without marks has no steps", "[loop]") {
  const plan::EventTable rows = with_thread_rows(stored("no-marks.json"));
  CHECK(shown(rows) ==
        "renderer, compositor: frame 0-60\n"
        "  renderer, compositor: raster 40-80\n"
        "    renderer, compositor: draw 50-60\n"
        "process 2, thread 9: read 20-50 late 90-100\n");
  CHECK(!plan::facts_of(rows).is_iteration);
  CHECK(plan::facts_of(rows).steps.empty());
}

TEST_CASE("Thread rows: steps are kept in a native file and a Chrome trace", "[loop]") {
  const TempFolder folder;
  std::vector<std::string> problems;
  for (const char* name : {"workers.json", "torch-steps.json", "nsys-ranges.json"})
    for (const char* to : {"t.pwt", "t.json", "t.json.gz"}) {
      INFO(name << " as " << to);
      const plan::EventTable table = stored(name);
      write_timeline_file(folder.path() / to, table);
      const plan::EventTable again = read_timeline_file(folder.path() / to, problems);
      CHECK(again.size() == table.size());
      const auto steps = plan::facts_of(again).steps, expected = plan::facts_of(table).steps;
      REQUIRE(steps.size() == expected.size());
      CHECK(steps.back().number == expected.back().number);
      CHECK(steps.back().length().value == Approx(expected.back().length().value));
    }
  CHECK(problems.empty());
}

TEST_CASE("Thread rows: a rank's pipeline has the rank's row, above all threads", "[loop]") {
  const TempFolder folder;
  std::vector<std::string> problems;
  const auto event = [](const std::string& name, int process, int start, int end) {
    return fmt::format(R"({{"ph":"X","name":"{}","pid":{},"tid":7,"ts":{},"dur":{}}})", name,
                       process, start, end - start);
  };
  const auto file =
      folder.write("t.json", fmt::format("[{},{},{},{}]", event("PP:0F0", 1, 0, 4),
                                         event("PP:0SEND_F0", 1, 4, 5), event("PP:1F0", 2, 5, 8),
                                         event("aten::mm", 2, 6, 7)));
  const plan::EventTable rows = with_thread_rows(read_timeline_file(file, problems));
  CHECK(shown(rows) ==
        "process 1: 0F0 0-4\n"
        "process 1: 0SEND_F0 4-5\n"
        "process 2: 1F0 5-8\n"
        "process 1, thread 7: PP:0F0 0-4 PP:0SEND_F0 4-5\n"
        "process 2, thread 7: PP:1F0 5-8\n"
        "  process 2, thread 7: aten::mm 6-7\n");
  plan::write_event_file(folder.path() / "t.pwt", rows);  // throws if the table is not valid
}

TEST_CASE("Thread rows: memory stays with the first row of its process", "[loop]") {
  const TempFolder folder;
  std::vector<std::string> problems;
  const auto file =
      folder.write("t.json", R"([{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":1},)"
                             R"({"ph":"X","name":"a","pid":2,"tid":1,"ts":0,"dur":1},)"
                             R"({"ph":"X","name":"a","pid":2,"tid":2,"ts":0,"dur":1},)"
                             R"({"ph":"C","name":"memory","pid":2,"ts":0,"args":{"bytes":7}}])");
  const plan::EventTable rows = with_thread_rows(read_timeline_file(file, problems));
  REQUIRE(rows.ranks == 3);
  CHECK(std::vector(rows.memory_begins.begin(), rows.memory_begins.end()) ==
        std::vector<std::uint64_t>{0, 0, 1, 1});
}

TEST_CASE("Thread rows: a timeline of Pipewright keeps its ranks", "[loop]") {
  const plan::Timeline timeline{.name = "t",
                                .ranks = 2,
                                .length = {3},
                                .spans = {{0, plan::Row::Compute, "0F0", {0}, {1}},
                                          {0, plan::Row::Send, "0SEND_F0", {1}, {2}},
                                          {1, plan::Row::Compute, "1F0", {2}, {3}}},
                                .memory = {}};
  CHECK(timeline_of(with_thread_rows(table_of(timeline))) == timeline);
}

}  // namespace pipewright::trace::thread_rows_test
