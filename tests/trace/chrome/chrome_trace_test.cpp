#include "pipewright/trace/chrome/chrome_trace.hpp"

#include <zlib.h>

#include <algorithm>

#include "pipewright/plan/timeline/event_file.hpp"
#include "pipewright/plan/timeline/trace.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/large_timelines.hpp"
#include "support/temp_folder.hpp"

namespace pipewright::trace::chrome_trace_test {

using test::error_of;
using test::TempFolder;

struct Read {
  plan::EventTable table;
  std::vector<std::string> problems;  // without the file's name
};

Read read(const std::string& text) {
  const TempFolder folder;
  const auto file = folder.write("t.json", text);
  Read read;
  read.table = read_chrome_trace(file, read.problems);
  for (std::string& problem : read.problems)
    problem.erase(0, file.string().size() + 2);
  // Every table can be written to a native file.
  plan::write_event_file(folder.path() / "t.pwt", read.table);
  return read;
}

/// Returns "rank/track/depth: name start-end, …" in µs, with a line for each track.
std::string shown(const plan::EventTable& table) {
  std::string text;
  for (const plan::EventTrack& track : table.tracks) {
    text += fmt::format("{}/{}/{}:", rank_name(table, track.rank), track.name, track.depth);
    for (std::uint64_t event = track.begin; event < track.end; ++event)
      text += fmt::format(" {} {:g}-{:g}", table.name_at(event), table.start[event] * 1e6,
                          table.end[event] * 1e6);
    text += '\n';
  }
  return text;
}

std::string span(const std::string& name, const std::string& thread, double start,
                 double duration) {
  return fmt::format(R"({{"ph":"X","name":"{}","pid":1,"tid":{},"ts":{},"dur":{}}})", name, thread,
                     start, duration);
}

std::string list_of(const std::vector<std::string>& events) {
  return fmt::format("[{}]", fmt::join(events, ","));
}

void gzip(const std::filesystem::path& file, const std::string& text) {
  const gzFile stream = gzopen(file.c_str(), "wb");
  gzwrite(stream, text.data(), static_cast<unsigned>(text.size()));
  gzclose(stream);
}

TEST_CASE("Chrome trace: nested events of a thread are below the enclosing ones", "[loop]") {
  const auto [table, problems] = read(
      list_of({span("inner", "7", 102, 3), span("outer", "7", 100, 10), span("leaf", "7", 102.5, 1),
               span("next", "7", 110, 5), span("other", "\"stream 3\"", 104, 2)}));
  CHECK(shown(table) ==
        "process 1/thread 7/0: outer 0-10 next 10-15\n"
        "process 1/thread 7/1: inner 2-5\n"
        "process 1/thread 7/2: leaf 2.5-3.5\n"
        "process 1/thread stream 3/0: other 4-6\n");
  CHECK(table.length.value == Approx(15e-6));
  CHECK(problems.empty());
}

TEST_CASE("Chrome trace: an object, a list, an unclosed list, a byte order mark and gzip are read",
          "[loop]") {
  const std::string event = span("a", "1", 0, 1);
  const std::string expected = "process 1/thread 1/0: a 0-1\n";
  for (const std::string& text :
       {"[" + event + "]", "[" + event, "[" + event + ",\n", "\xef\xbb\xbf [ " + event + " ]\n",
        R"({"traceEvents":[)" + event + "]}",
        R"({"a":[1,{"b":"]}\""}],"c":"}","traceEvents" : [)" + event + R"(],"d":{}})"}) {
    const auto [table, problems] = read(text);
    INFO(text);
    CHECK(shown(table) == expected);
    CHECK(problems.empty());
  }
  const TempFolder folder;
  std::vector<std::string> problems;
  gzip(folder.path() / "t.json.gz", "[" + event + "]");
  CHECK(shown(read_chrome_trace(folder.path() / "t.json.gz", problems)) == expected);
  CHECK(problems.empty());
}

TEST_CASE("Chrome trace: a B and its E are one event", "[loop]") {
  const auto [table, problems] = read(
      R"([{"ph":"B","name":"a","pid":1,"tid":1,"ts":1},{"ph":"B","name":"b","pid":1,"tid":1,"ts":2},
      {"ph":"E","pid":1,"tid":1,"ts":3},{"ph":"E","pid":1,"tid":1,"ts":5},
      {"ph":"E","pid":1,"tid":1,"ts":6},{"ph":"B","name":"c","pid":1,"tid":1,"ts":7},
      {"ph":"X","name":"d","pid":1,"tid":2,"ts":8,"dur":1}])");
  CHECK(shown(table) ==
        "process 1/thread 1/0: a 0-4 c 6-8\n"
        "process 1/thread 1/1: b 1-2\n"
        "process 1/thread 2/0: d 7-8\n");
  CHECK(problems ==
        std::vector<std::string>{"byte 173: event skipped: it ends an event that has not begun",
                                 "1 event begins and does not end: shown up to the end"});
}

TEST_CASE("Chrome trace: metadata give names and order of processes and threads", "[loop]") {
  const auto [table, problems] = read(
      list_of({R"({"ph":"M","name":"process_name","pid":1,"args":{"name":"trainer"}})",
               R"({"ph":"M","name":"thread_name","pid":1,"tid":7,"args":{"name":"main \"loop\""}})",
               R"({"ph":"M","name":"thread_sort_index","pid":1,"tid":7,"args":{"sort_index":9}})",
               R"({"ph":"M","name":"process_sort_index","pid":2,"args":{"sort_index":-1}})",
               span("a", "7", 0, 1), span("b", "8", 0, 1),
               R"({"args":{"x":[1,{}]},"ph":"X","name":"c","pid":2,"tid":1,"ts":0.0,"dur":1e0})"}));
  CHECK(shown(table) ==
        "process 2/thread 1/0: c 0-1\n"
        "trainer/thread 8/0: b 0-1\n"
        "trainer/main \"loop\"/0: a 0-1\n");
  CHECK(problems.empty());
}

TEST_CASE("Chrome trace: times since 1970 keep their nanoseconds", "[loop]") {
  const auto [table, problems] =
      read(R"([{"ph":"X","name":"a","pid":1,"tid":1,"ts":1712345678000000.125,"dur":0.25},
               {"ph":"X","name":"b","pid":1,"tid":1,"ts":"1712345678000000.375","dur":1}])");
  CHECK(shown(table) == "process 1/thread 1/0: a 0-0.25 b 0.25-1.25\n");
}

TEST_CASE("Chrome trace: an event without duration is not nested in the next one", "[loop]") {
  CHECK(shown(read(list_of({span("a", "1", 0, 0), span("b", "1", 0, 2)})).table) ==
        "process 1/thread 1/0: a 0-0 b 0-2\n");
}

TEST_CASE("Chrome trace: rounded ends do not overlap", "[loop]") {
  const auto table = read(list_of({span("a", "1", 0, 1.001), span("b", "1", 1, 1)})).table;
  CHECK(table.tracks.size() == 1);
  CHECK(table.start[1] == table.end[0]);
  // Events that overlap by more than rounding, without being nested, get separate tracks.
  CHECK(shown(read(list_of({span("a", "1", 0, 2), span("b", "1", 1, 2)})).table) ==
        "process 1/thread 1/0: a 0-2\n"
        "process 1/thread 1/1: b 1-3\n");
}

TEST_CASE("Chrome trace: invalid events are skipped, counted and reported", "[loop]") {
  const auto [table, problems] = read("[" + span("a", "1", 0, 1) + ",\n" +
                                      R"({"ph":"X","name":"no time","pid":1,"tid":1},
{"ph":"X","name":"no JSON","pid":1,"tid":1,"ts":01x2,"dur":1},
{"ph":"X","name":nothing,"pid":1,"tid":1,"ts":1,"dur":1 "x":1},
{"name":"no phase"},
{"ph":"Q"},
{"ph":"X","name":"backwards","pid":1,"tid":1,"ts":1,"dur":-1},
{"ph":"X","name":"no end of text,"pid":1,"tid":1,"ts":1,"dur":1},
{"ph":"X","name":")"
                                      "\xff"
                                      R"(","pid":1,"tid":1,"ts":1,"dur":1},
)" + span("z", "1", 5, 1) + "]");
  CHECK(shown(table) == "process 1/thread 1/0: a 0-1 z 5-6\n");
  REQUIRE(problems.size() == 6);
  CHECK(problems[0] == R"(byte 55: event skipped: it has no time ("ts"))");
  CHECK(problems[1] == R"(byte 100: event skipped: it has no time ("ts"))");
  CHECK(problems[5] == "and 3 more events skipped");
}

TEST_CASE("Chrome trace: a file truncated anywhere is shown up to the cut", "[loop]") {
  std::string text = R"({"schemaVersion":1,"traceEvents":[)";
  for (int i = 0; i < 20; ++i)
    text += (i == 0 ? "\n" : ",\n") + span("a" + std::to_string(i), "1", i, 1);
  text += "\n],\"traceName\":\"x\"}";
  const std::size_t first = text.find("},") + 1;
  for (std::size_t size = first; size < text.size(); ++size) {
    INFO(size);
    const auto [table, problems] = read(text.substr(0, size));
    const std::string_view before = std::string_view(text).substr(0, size);
    std::uint64_t whole = 0;
    for (std::size_t at = before.find("1}"); at != std::string::npos;
         at = before.find("1}", at + 1))
      ++whole;
    CHECK(table.size() == whole);
    REQUIRE(problems.size() == 1);
    CHECK(problems.front() ==
          fmt::format("byte {}: the file is cut off: only what precedes it is shown", size));
  }
  CHECK(error_of([&] { read(text.substr(0, 60)); }).find("no events that can be shown") !=
        std::string::npos);
}

TEST_CASE("Chrome trace: a truncated or damaged gzipped file is read up to the damage", "[loop]") {
  const TempFolder folder;
  std::string text = "[";
  test::Die die;
  for (int i = 0; i < 20'000; ++i)
    text += span("a" + std::to_string(die.below(10'000)), "1", i, 1) + ",\n";
  gzip(folder.path() / "t.gz", text + span("z", "1", 20'000, 1) + "]");
  std::ifstream stream(folder.path() / "t.gz", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  std::vector<std::string> problems;
  const auto cut = folder.write("cut.gz", bytes.substr(0, bytes.size() / 2));
  const auto table = read_chrome_trace(cut, problems);
  CHECK(table.size() > 5'000);
  CHECK(table.size() < 15'000);
  REQUIRE(problems.size() == 1);
  const std::string& problem = problems.front();
  CHECK(problem.starts_with(cut.string() + ": byte "));
  CHECK(problem.ends_with(": unexpected end of file: only what precedes it is shown"));
}

TEST_CASE("Chrome trace: a file of another format is rejected with a hint", "[loop]") {
  for (const char* text : {"", "  ", "hello", "17", "\"traceEvents\""})
    CHECK(error_of([&] { read(text); }).find("not a Chrome trace: expected a JSON list") !=
          std::string::npos);
  for (const char* text : {"{}", "{\"a\":[]}", "{\"traceEvents\":7}", "{\"traceEvents\""})
    CHECK(error_of([&] { read(text); }).find("not a Chrome trace: it has no list") !=
          std::string::npos);
  for (const char* text : {"[]", "{\"traceEvents\":[]}", "[1,2]", "[{\"ph\":\"s\"}]"})
    CHECK(error_of([&] { read(text); }).find("no events that can be shown") != std::string::npos);
  CHECK(error_of([&] { read("[{}]"); }).find("it has no phase") != std::string::npos);
  std::vector<std::string> problems;
  CHECK(error_of([&] { read_chrome_trace("/nowhere", problems); }).find("cannot be read") !=
        std::string::npos);
  CHECK(error_of([&] { read_chrome_trace("/", problems); }).find("cannot be read") !=
        std::string::npos);
}

TEST_CASE("Chrome trace: memory counters and torch's samples are read", "[loop]") {
  const auto counted =
      read(list_of({span("a", "1", 10, 10),
                    R"({"ph":"C","name":"memory","pid":1,"ts":12,"args":{"held_bytes":7}})",
                    R"({"ph":"C","name":"memory","pid":1,"ts":10,"args":{"held_bytes":5}})",
                    R"({"ph":"C","name":"cpu load","pid":1,"ts":10,"args":{"percent":5}})"}))
          .table;
  REQUIRE(counted.memory.size() == 2);
  CHECK(counted.memory[0].bytes == 5);
  CHECK(counted.memory[1].time == Approx(2e-6));

  const auto sample = [](int device, int bytes) {
    return fmt::format(R"({{"ph":"i","name":"[memory]","pid":1,"tid":1,"ts":11,"args":)"
                       R"({{"Total Allocated":{},"Device Id":0,"Device Type":{}}}}})",
                       bytes, device);
  };
  const auto sampled = read(list_of({span("a", "1", 10, 10), sample(0, 3), sample(1, 99)})).table;
  REQUIRE(sampled.memory.size() == 1);  // the device's
  CHECK(sampled.memory[0].bytes == 99);
}

std::string torch_rank(int rank, const std::string& events, std::int64_t base = 0) {
  return fmt::format(
      R"({{"schemaVersion":1,"distributedInfo":{{"backend":"nccl","rank":{},"world_size":2}},)"
      R"("traceEvents":[{}],"baseTimeNanoseconds":{}}})",
      rank, events, base);
}

std::string torch_span(const std::string& category, const std::string& name, int process,
                       double start, double duration) {
  return fmt::format(
      R"({{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":7,"ts":{},"dur":{},"args":{{"x":1}}}})",
      category, name, process, start, duration);
}

TEST_CASE("Chrome trace: the actions of torch's pipelining have a track", "[loop]") {
  const auto table =
      read(torch_rank(3, torch_span("user_annotation", "PP:0F0", 42, 0, 4) + "," +
                             torch_span("cpu_op", "aten::mm", 42, 1, 2) + "," +
                             torch_span("user_annotation", "PP:0SEND_F0", 42, 4, 1) + "," +
                             torch_span("user_annotation", "PP:(0F1;0B0)OVERLAP_F_B", 42, 6, 2)))
          .table;
  CHECK(shown(table) ==
        "rank 3/pipeline/0: 0F0 0-4 (0F1;0B0)OVERLAP_F_B 6-8\n"
        "rank 3/thread 7/0: PP:0F0 0-4 PP:0SEND_F0 4-5 PP:(0F1;0B0)OVERLAP_F_B 6-8\n"
        "rank 3/thread 7/1: aten::mm 1-3\n"
        "rank 3/pipeline send/0: 0SEND_F0 4-5\n");
  CHECK(table.tracks.back().row == plan::Row::Send);
}

TEST_CASE("Chrome trace: an action's device times precede its host times", "[loop]") {
  const auto table = read(torch_rank(0, torch_span("user_annotation", "PP:0F0", 42, 0, 4) + "," +
                                            torch_span("gpu_user_annotation", "PP:0F0", 0, 2, 8)))
                         .table;
  CHECK(shown(table) ==
        "rank 0/pipeline/0: 0F0 2-10\n"
        "rank 0/pipeline on the host/0: 0F0 0-4\n"
        "rank 0/0, thread 7/0: PP:0F0 2-10\n"
        "rank 0/42, thread 7/0: PP:0F0 0-4\n");
  CHECK(table.rank_names.empty());
}

TEST_CASE("Chrome traces: one file per rank is read and aligned by clock", "[loop]") {
  constexpr std::int64_t today = 1'790'857'026'000'000'000;
  const TempFolder folder;
  const auto b = folder.write(
      "b.json", torch_rank(1, torch_span("user_annotation", "PP:1F0", 42, 5, 4), today + 2'000));
  const auto a = folder.write(
      "a.json", torch_rank(0, torch_span("user_annotation", "PP:0F0", 42, 1, 4), today + 1'000));
  std::vector<std::string> problems;
  const auto table = read_chrome_traces({b, a}, problems);
  CHECK(shown(table) ==
        "rank 0/pipeline/0: 0F0 0-4\n"
        "rank 0/thread 7/0: PP:0F0 0-4\n"
        "rank 1/pipeline/0: 1F0 5-9\n"
        "rank 1/thread 7/0: PP:1F0 5-9\n");
  CHECK(problems.empty());
}

TEST_CASE("Chrome trace: megabytes of torch's profiler are read", "[loop]") {
  const TempFolder folder;
  const auto file = folder.path() / "kineto.json";
  const std::uint64_t events = test::write_made_up_kineto(file, 3'000'000, 5);
  std::vector<std::string> problems;
  const auto table = read_chrome_trace(file, problems);
  CHECK(problems.empty());
  CHECK(rank_name(table, 0) == "rank 5");
  CHECK(events > 10'000);
  std::uint64_t actions = 0, others = 0;
  for (const plan::EventTrack& track : table.tracks)
    (track.name.starts_with(pipeline_track) ? actions : others) += track.end - track.begin;
  CHECK(others + table.memory.size() + 4 == events);
  CHECK(actions == 2 * table.memory.size());  // on the host and on the device
}

TEST_CASE("Chrome trace: a trace of Pipewright keeps its spans to the digits of its microseconds",
          "[loop]") {
  const plan::EventTable own = test::made_up_events(1'000, 3);
  const auto [table, problems] = read(plan::to_trace(plan::timeline_of(own)));
  CHECK(problems == std::vector<std::string>{});
  CHECK(table.ranks == 3);
  CHECK(table.memory.size() == own.memory.size());
}

}  // namespace pipewright::trace::chrome_trace_test
