#include "pipewright/plan/timeline/trace.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/timeline/timeline.hpp"
#include "support/catch.hpp"

namespace trace_test {

using namespace pipewright::plan;

/// A timeline whose times are not exact in decimal microseconds.
Timeline uneven() {
  return {.name = "measured \"twice\" <&>",
          .ranks = 2,
          .length = {1.0 / 3},
          .spans = {{0, Row::Compute, "0F0", {0}, {0.1 + 0.2}},
                    {0, Row::Send, "0SEND_F0", {1.0 / 7}, {2.0 / 7}},
                    {1, Row::Receive, "1RECV_F0", {1e-9 / 3}, {2.0 / 7}},
                    {1, Row::Send, "1SEND_B0", {0.30000000000000004}, {0.31}},
                    {0, Row::Receive, "0RECV_B0", {0.3}, {0.31}},
                    {1, Row::Compute, "1STEP", {0.32}, {0.32}}},
          .memory = {{0, {0}, {9'007'199'254'740'993}}, {1, {1.0 / 3}, {0}}}};
}

/// A timeline with a span of every row, and with unordered causes and critical path.
Timeline explained() {
  Timeline timeline = uneven();
  timeline.spans.push_back({1, Row::Reduce, "1REDUCE_GRAD", {0.1}, {1.0 / 3}});
  timeline.spans.push_back({0, Row::Reduce, "0REDUCE_GRAD", {0.2}, {1.0 / 3}});
  timeline.idle = {
      {1, IdleCause::Exposed, {0.1}, {1.0 / 3}}, {0, IdleCause::WarmUp, {0}, {1e-9 / 3}},
      {0, IdleCause::Imbalance, {0.1}, {0.2}},   {1, IdleCause::Queue, {0}, {0}},
      {1, IdleCause::Transfer, {0.2}, {0.3}},    {0, IdleCause::CoolDown, {0.3}, {1.0 / 3}}};
  timeline.critical = {4, 0, 1, 7, 2};
  return timeline;
}

Timeline read(const std::string& text) {
  return timeline_from_trace(JsonDocument::parse(text, "trace.json"));
}

/// Returns a file of two ranks with these events.
std::string file_with(const std::string& events) {
  return "{\"otherData\":{\"format\":\"pipewright/timeline/1\",\"name\":\"measured\",\"ranks\":2,"
         "\"length_s\":1.0},\n\"traceEvents\":[\n" +
         events + "]}";
}

std::string span_with(const std::string& changes) {
  return R"({"name":"0F0","ph":"X","tid":1,"ts":0,"dur":1,)" + changes + "}";
}

std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

/// Returns the first part that is missing in the text; empty if all are there.
std::string missing_in(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    if (text.find(part) == std::string::npos)
      return part + " is not in: " + text;
  return "";
}

std::vector<Json> events_of_phase(const std::string& trace, const std::string& phase) {
  std::vector<Json> found;
  const Json document = Json::parse(trace);
  for (const Json& event : document["traceEvents"])
    if (event["ph"] == phase)
      found.push_back(event);
  return found;
}

TEST_CASE("A trace gives back the timeline to the last bit", "[plan][trace]") {
  CHECK(read(to_trace(uneven())) == uneven());
}

TEST_CASE("A trace gives back causes of idle time, reductions and the critical path",
          "[plan][trace]") {
  const Timeline again = read(to_trace(explained()));
  CHECK(again.idle == explained().idle);
  CHECK(again.critical == explained().critical);
  CHECK(again == explained());
}

TEST_CASE("A trace gives back names that JSON must escape", "[plan][trace]") {
  Timeline timeline = uneven();
  for (const char* name : {"\"", "\\", "\n", "\x7f", "\u00b5", ""}) {
    timeline.spans[0].action = name;
    CHECK(read(to_trace(timeline)) == timeline);
  }
}

TEST_CASE("A trace gives back times of any size", "[plan][trace]") {
  Timeline timeline = uneven();
  for (const double time : {0.0, 1e-300, 5e-324, 123456789.0, 1e15, 1e16, 12345678901234567890.0,
                            1e22, 1.7976931348623157e308}) {
    timeline.spans[0].end = {time};
    timeline.memory[0].time = {time};
    CHECK(read(to_trace(timeline)) == timeline);
  }
}

TEST_CASE("A trace without spans gives back its length and ranks", "[plan][trace]") {
  const Timeline empty{.name = "", .ranks = 3, .length = {2}, .spans = {}, .memory = {}};
  CHECK(read(to_trace(empty)) == empty);
}

TEST_CASE("Viewers find ranks as processes and rows as threads", "[plan][trace]") {
  std::string names;
  for (const Json& event : events_of_phase(to_trace(uneven()), "M"))
    names += event["args"]["name"].get<std::string>() + ", ";
  CHECK(names ==
        "rank 0, compute, send, receive, "
        "rank 1, compute, send, receive, ");
}

TEST_CASE("A rank has a thread for each row that it uses and one for idle time", "[plan][trace]") {
  Timeline timeline = explained();
  std::erase_if(timeline.spans, [](const Span& span) {
    return span.rank == 0 && (span.row == Row::Receive || span.row == Row::Compute);
  });
  std::erase_if(timeline.idle, [](const IdleSpan& idle) { return idle.rank == 1; });
  timeline.critical.clear();
  const std::string trace = to_trace(timeline);
  std::string names;
  std::map<std::pair<int, int>, std::string> threads;
  for (const Json& event : events_of_phase(trace, "M")) {
    const auto name = event["args"]["name"].get<std::string>();
    names += name + ", ";
    if (event.contains("tid"))
      threads[{event["pid"].get<int>(), event["tid"].get<int>()}] = name;
  }
  CHECK(names ==
        "rank 0, send, reduce, idle, "
        "rank 1, compute, send, receive, reduce, ");
  for (const Json& event : events_of_phase(trace, "X")) {
    const bool idle = threads[{event["pid"].get<int>(), event["tid"].get<int>()}] == "idle";
    const auto& causes = idle_causes();
    const auto category = event["cat"].get<std::string>();
    CHECK(idle == (std::find(causes.begin(), causes.end(), category) != causes.end()));
  }
}

TEST_CASE("The second of two overlapping compute spans has its own thread", "[plan][trace]") {
  Timeline timeline = uneven();
  timeline.spans.push_back({1, Row::Compute, "1F1", {0.1}, {0.2}});
  timeline.spans.push_back({1, Row::Compute, "1B0", {0.12}, {0.25}});
  timeline.spans.push_back({1, Row::Compute, "1B1", {0.249}, {0.31}});  // a clock error
  const std::string trace = to_trace(timeline);
  CHECK(read(trace) == timeline);
  std::string names, threads;
  for (const Json& event : events_of_phase(trace, "M"))
    names += event["args"]["name"].get<std::string>() + "; ";
  CHECK(names ==
        "rank 0; compute; send; receive; "
        "rank 1; compute; send; receive; compute, beside; ");
  for (const Json& event : events_of_phase(trace, "X"))
    if (event["pid"] == 1 && event["name"] != "1SEND_B0" && event["name"] != "1RECV_F0")
      threads +=
          event["name"].get<std::string>() + ":" + std::to_string(event["tid"].get<int>()) + " ";
  CHECK(threads == "1STEP:1 1F1:1 1B0:6 1B1:1 ");
}

TEST_CASE("Viewers can ask which spans are critical", "[plan][trace]") {
  std::string critical;
  for (const Json& event : events_of_phase(to_trace(explained()), "X"))
    if (event["args"].value("critical", false))
      critical += event["name"].get<std::string>() + " ";
  CHECK(critical == "0F0 0SEND_F0 1RECV_F0 0RECV_B0 0REDUCE_GRAD ");
}

TEST_CASE("Viewers find times in microseconds", "[plan][trace]") {
  Timeline timeline{.name = "t", .ranks = 1, .length = {1}, .spans = {}, .memory = {}};
  timeline.spans = {{0, Row::Compute, "0F0", {0.25}, {0.75}}};
  timeline.memory = {{0, {0.5}, {7}}};
  const std::string trace = to_trace(timeline);
  const Json span = events_of_phase(trace, "X").at(0);
  CHECK(span["ts"] == 250'000.0);
  CHECK(span["dur"] == 500'000.0);
  const Json counter = events_of_phase(trace, "C").at(0);
  CHECK(counter["ts"] == 500'000.0);
  CHECK(counter["args"] == Json{{"held_bytes", 7}});
}

TEST_CASE("An arrow leads from a send to the receive of the same data", "[plan][trace]") {
  const std::string trace = to_trace(uneven());
  const auto starts = events_of_phase(trace, "s");
  const auto ends = events_of_phase(trace, "f");
  REQUIRE(starts.size() == 2);
  REQUIRE(ends.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(starts[i]["id"] == ends[i]["id"]);
    CHECK(starts[i]["ts"] <= ends[i]["ts"]);
  }
  CHECK(starts[0]["pid"] == 0);  // 0SEND_F0
  CHECK(ends[0]["pid"] == 1);    // 1RECV_F0
  CHECK(starts[1]["pid"] == 1);  // 1SEND_B0
  CHECK(ends[1]["pid"] == 0);    // 0RECV_B0
}

TEST_CASE("A send without its receive has no arrow", "[plan][trace]") {
  Timeline timeline = uneven();
  timeline.spans.erase(timeline.spans.begin() + 2);  // 1RECV_F0
  CHECK(events_of_phase(to_trace(timeline), "s").size() == 1);
  CHECK(read(to_trace(timeline)) == timeline);
}

TEST_CASE("A trace of another program is rejected with the required format", "[plan][trace]") {
  CHECK(missing_in(error_of(R"({"traceEvents":[]})"), {"trace.json:1:1: /", "\"otherData\""}) ==
        "");
  CHECK(missing_in(error_of(R"({"traceEvents":[],"otherData":{"format":"pipewright/timeline/2",
"name":"x","ranks":1,"length_s":1}})"),
                   {"/otherData/format", "pipewright/timeline/1"}) == "");
  CHECK(missing_in(error_of("[]"), {"an object is needed here"}) == "");
}

TEST_CASE("A wrong event is rejected with its position and reason", "[plan][trace]") {
  const std::string args = R"("args":{"start_s":0,"end_s":1})";
  const auto missing = [](const std::string& event, const std::vector<std::string>& parts) {
    return missing_in(error_of(file_with(event)), parts);
  };
  CHECK(error_of(file_with(span_with(R"("pid":0,)" + args))) == "");
  CHECK(missing(span_with(R"("pid":2,)" + args),
                {"trace.json:3:", "/traceEvents/0/pid: 2 is not possible"}) == "");
  CHECK(missing(span_with(R"("pid":-1,)" + args), {"/pid: -1 is not possible"}) == "");
  CHECK(missing(span_with(args), {"\"pid\" is missing"}) == "");
  CHECK(missing(span_with(R"("pid":0)"), {"\"args\" is missing"}) == "");
  CHECK(missing(span_with(R"("pid":0,"color":"red",)" + args), {"unknown key \"color\""}) == "");
  CHECK(missing(span_with(R"("pid":0,"args":{"start_s":1,"end_s":0.5})"),
                {"/traceEvents/0/args/end_s: the span 0F0 ends before it starts"}) == "");
  CHECK(missing(span_with(R"("pid":0,"args":{"start_s":-1,"end_s":1})"),
                {"/traceEvents/0/args/start_s: -1 is not possible"}) == "");
  CHECK(missing(R"({"ph":"B","name":"0F0","pid":0,"tid":1,"ts":0})",
                {"/traceEvents/0/ph: \"B\" is not known here"}) == "");
  CHECK(missing(R"({"ph":"C","name":"memory","pid":0,"ts":0,"time_s":0,"args":{}})",
                {"/traceEvents/0/args: \"held_bytes\" is missing"}) == "");
}

TEST_CASE("A wrong cause or critical path is rejected", "[plan][trace]") {
  const auto missing = [](const std::string& events, const std::string& part) {
    return missing_in(error_of(file_with(events)), {part});
  };
  const auto idle = [](const std::string& cause) {
    return R"({"name":")" + cause + R"(","ph":"X","pid":0,"tid":5,"args":{"start_s":0,"end_s":1}})";
  };
  const auto critical = [](const std::string& args) {
    return span_with(R"("pid":0,"args":{"start_s":0,"end_s":1,"critical":true)" + args + "}");
  };
  CHECK(error_of(file_with(idle("queue"))) == "");
  CHECK(missing(idle("lunch"), "/traceEvents/0/name: \"lunch\" is not known here") == "");
  CHECK(missing(R"({"name":"0F0","ph":"X","pid":0,"tid":7,"args":{"start_s":0,"end_s":1}})",
                "/traceEvents/0/tid: 7 is not possible") == "");
  CHECK(error_of(file_with(critical(R"(,"critical_step":3)"))) == "");
  CHECK(missing(critical(""), "\"critical_step\" is missing") == "");
  CHECK(missing(critical(R"(,"critical_step":-1)"), "-1 is not possible") == "");
  CHECK(missing(critical(R"(,"critical_step":3)") + "," + critical(R"(,"critical_step":3)"),
                "/traceEvents/1/args/critical_step: another span is step 3 too") == "");
}

TEST_CASE("A time that is not a number is rejected", "[plan][trace]") {
  const auto missing = [](const std::string& time, const std::string& part) {
    const std::string args = R"("pid":0,"args":{"end_s":1,"start_s":)" + time + "}";
    return missing_in(error_of(file_with(span_with(args))), {part});
  };
  CHECK(missing("NaN", "a number is needed here, not the text \"NaN\"") == "");
  CHECK(missing("1e999", "number overflow") == "");
  CHECK(missing("null", "a number is needed here, not null") == "");
  CHECK(missing("\"NaN\"", "a number is needed here, not the text") == "");
}

TEST_CASE("A time that is not a number is written so that reading rejects it", "[plan][trace]") {
  Timeline timeline = uneven();
  timeline.spans[0].end = {std::numeric_limits<double>::quiet_NaN()};
  CHECK(missing_in(error_of(to_trace(timeline)), {"/args/end_s: a number is needed"}) == "");
}

TEST_CASE("All wrong events are named, not only the first", "[plan][trace]") {
  const std::string bad = R"({"ph":"Q"})";
  CHECK(missing_in(error_of(file_with(bad + ",\n" + bad)),
                   {"trace.json:3:2: /traceEvents/0/ph", "trace.json:4:2: /traceEvents/1/ph"}) ==
        "");
}

TEST_CASE("An error in every event is reported a hundred times, not a million", "[plan][trace]") {
  std::string events = R"({"ph":"Q"})";
  for (int i = 0; i < 1000; ++i)
    events += ",\n" + std::string(R"({"ph":"Q"})");
  const std::string error = error_of(file_with(events));
  CHECK(std::count(error.begin(), error.end(), '\n') == 99);
}

}  // namespace trace_test
