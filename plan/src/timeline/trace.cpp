// Timelines as Chrome Trace Event JSON. Viewers read `ts` and `dur`, which are in microseconds and
// therefore rounded. This reader uses the exact seconds stored with them.

#include "pipewright/plan/timeline/trace.hpp"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/timeline/side_by_side.hpp"
#include "pipewright/plan/timeline/timeline.hpp"
#include "pipewright/plan/timeline/timeline_transfers.hpp"

namespace pipewright::plan {
namespace {

constexpr const char* format = "pipewright/timeline/1";
constexpr int most_ranks = 1'000'000;

/// Returns the viewer's thread. Numbers begin at 1, because viewers treat thread 0 as the idle
/// task.
int thread_of(Row row) { return static_cast<int>(row) + 1; }
constexpr int idle_thread = static_cast<int>(all_rows.size()) + 1;
/// The thread for the second of two concurrent compute spans. Viewers would show overlapping spans
/// of one thread as nested calls.
constexpr int beside_thread = idle_thread + 1;
Row row_of(int thread) {
  return thread == beside_thread ? Row::Compute : static_cast<Row>(thread - 1);
}
std::string name_of(int thread) {
  return thread == idle_thread     ? "idle"
         : thread == beside_thread ? "compute, beside"
                                   : word_of(row_of(thread));
}

double microseconds(Seconds time) { return time.value * 1e6; }

/// Formats a number as briefly as possible such that it reads back bit for bit. JSON cannot express
/// non-finite numbers; a reader that needs a number rejects `null`.
std::string number(double value) {
  return std::isfinite(value) ? fmt::format(FMT_COMPILE("{}"), value) : "null";
}

/// Quotes a text. Almost none contains characters to escape, and Json is slow to find that out.
std::string quoted(const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return c >= ' ' && c <= '~' && c != '"' && c != '\\';
  });
  return plain ? '"' + text + '"' : Json(text).dump();
}

/// The events as text, one per line, so that a file with many spans can be read and compared by
/// line. A file has millions of them, so they are formatted without a Json value for each.
class EventList {
 public:
  template <class... Values>
  void add(fmt::format_string<Values...> event, Values&&... values) {
    text_ += text_.empty() ? "\n" : ",\n";
    fmt::format_to(std::back_inserter(text_), event, std::forward<Values>(values)...);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Returns the thread of each span.
std::vector<int> threads_of(const std::vector<Span>& spans, int ranks) {
  std::vector<int> threads;
  // By rank: the last compute span.
  std::vector<const Span*> before(static_cast<std::size_t>(ranks), nullptr);
  for (const Span& span : spans) {
    threads.push_back(thread_of(span.row));
    if (span.row != Row::Compute)
      continue;
    const Span*& last = before[static_cast<std::size_t>(span.rank)];
    if (last != nullptr && last->start <= span.start && are_side_by_side(*last, span))
      threads.back() = beside_thread;
    else
      last = &span;
  }
  return threads;
}

/// Returns the threads of each rank: one for each row that occurs there, and one for idle time.
std::vector<std::set<int>> threads_by_rank(const Timeline& timeline,
                                           const std::vector<int>& thread_of_span) {
  std::vector<std::set<int>> threads(static_cast<std::size_t>(timeline.ranks));
  for (std::size_t i = 0; i < timeline.spans.size(); ++i)
    threads[static_cast<std::size_t>(timeline.spans[i].rank)].insert(thread_of_span[i]);
  for (const IdleSpan& idle : timeline.idle)
    threads[static_cast<std::size_t>(idle.rank)].insert(idle_thread);
  return threads;
}

void add_names(EventList& events, const Timeline& timeline,
               const std::vector<int>& thread_of_span) {
  const auto threads = threads_by_rank(timeline, thread_of_span);
  for (std::size_t rank = 0; rank < threads.size(); ++rank) {
    events.add(R"({{"name":"process_name","ph":"M","pid":{0},"args":{{"name":"rank {0}"}}}})",
               rank);
    for (const int thread : threads[rank])
      events.add(R"({{"name":"thread_name","ph":"M","pid":{},"tid":{},"args":{{"name":"{}"}}}})",
                 rank, thread, name_of(thread));
  }
}

/// Formats the tensor-parallel times of a span. Times of 0 are left out.
std::string shards_text(const Span& span) {
  std::string text;
  if (span.shards > Seconds{})
    text += fmt::format(R"(,"shards_s":{})", number(span.shards.value));
  if (span.late > Seconds{})
    text += fmt::format(R"(,"late_s":{})", number(span.late.value));
  return text;
}

/// Adds a span. `critical_step` is its position on the critical path, or -1 if it is not on it.
void add_span(EventList& events, const Span& span, int thread, int critical_step) {
  events.add(R"({{"name":{},"cat":{},"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},)"
             R"("args":{{"start_s":{},"end_s":{}{}{}}}}})",
             quoted(span.action), quoted(kind_of(span.action)), span.rank, thread,
             number(microseconds(span.start)), number(microseconds(span.end - span.start)),
             number(span.start.value), number(span.end.value), shards_text(span),
             critical_step < 0
                 ? ""
                 : fmt::format(R"(,"critical":true,"critical_step":{})", critical_step));
}

void add_spans(EventList& events, const Timeline& timeline,
               const std::vector<int>& thread_of_span) {
  std::vector<int> critical_steps(timeline.spans.size(), -1);
  for (std::size_t step = 0; step < timeline.critical.size(); ++step)
    critical_steps[timeline.critical[step]] = static_cast<int>(step);
  for (std::size_t i = 0; i < timeline.spans.size(); ++i)
    add_span(events, timeline.spans[i], thread_of_span[i], critical_steps[i]);
}

void add_idle(EventList& events, const IdleSpan& idle) {
  events.add(R"({{"name":"{0}","cat":"{0}","ph":"X","pid":{1},"tid":{2},"ts":{3},"dur":{4},)"
             R"("args":{{"start_s":{5},"end_s":{6}}}}})",
             to_string(idle.cause), idle.rank, idle_thread, number(microseconds(idle.start)),
             number(microseconds(idle.end - idle.start)), number(idle.start.value),
             number(idle.end.value));
}

/// Adds a memory sample. The exact time is outside of `args`, because a viewer plots every value in
/// there.
void add_memory(EventList& events, const MemorySample& sample) {
  events.add(R"({{"name":"memory","ph":"C","pid":{},"ts":{},"time_s":{},)"
             R"("args":{{"held_bytes":{}}}}})",
             sample.rank, number(microseconds(sample.time)), number(sample.time.value),
             sample.held.value);
}

/// Adds an arrow from a send to its receive. The receive may have waited since before the send
/// began, and an arrow must not point back in time. "bp" makes it end at the enclosing span and not
/// at the next one.
void add_flow(EventList& events, int id, const Span& send, const Span& receive) {
  events.add(R"({{"name":"transfer","cat":"transfer","ph":"s","id":{},"pid":{},"tid":{},"ts":{}}})",
             id, send.rank, thread_of(send.row), number(microseconds(send.start)));
  events.add(R"({{"name":"transfer","cat":"transfer","ph":"f","bp":"e","id":{},"pid":{},"tid":{},)"
             R"("ts":{}}})",
             id, receive.rank, thread_of(receive.row),
             number(microseconds(std::max(send.start, receive.start))));
}

void read_header(JsonObject& root, Timeline& timeline) {
  JsonObject header(root.diagnostics(), root.child("otherData"));
  header.choice("format", {format});
  timeline.name = header.text("name");
  timeline.ranks = header.integer("ranks", {.least = 1, .most = most_ranks});
  timeline.length = header.seconds("length_s");
}

/// Allows keys that exist only for viewers and repeat other values.
void allow_for_viewers(JsonObject& event, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    event.allow(key);
}

int read_rank(JsonObject& event, const Timeline& timeline) {
  return event.integer("pid", {.least = 0, .most = timeline.ranks - 1.0});
}

/// The timeline read so far, in the order of the file, and the positions of critical spans on their
/// path.
struct Reading {
  Timeline timeline;
  std::map<int, std::size_t> critical;  // position on the path → span
};

/// Reads the exact start and end of a span. `name` is for error messages.
std::pair<Seconds, Seconds> read_times(JsonObject& args, const std::string& name) {
  const Seconds start = args.seconds("start_s");
  const Seconds end = args.seconds("end_s");
  if (end < start)
    args.error("end_s", "the span " + name + " ends before it starts");
  return {start, end};
}

void read_critical(JsonObject& args, Reading& reading) {
  if (!args.flag("critical", false))
    return;
  const int step = args.integer("critical_step", at_least(0));
  const std::size_t span = reading.timeline.spans.size();  // the span that is being read
  if (!reading.critical.emplace(step, span).second)
    args.error("critical_step", fmt::format("another span is step {} too", step));
}

IdleSpan read_idle(JsonObject& event, int rank) {
  const auto& causes = idle_causes();
  const std::string cause = event.choice("name", causes);
  JsonObject args(event.diagnostics(), event.child("args"));
  const auto [start, end] = read_times(args, cause);
  const auto index = std::find(causes.begin(), causes.end(), cause) - causes.begin();
  return {rank, static_cast<IdleCause>(index), start, end};
}

void read_span(JsonObject& event, Reading& reading) {
  allow_for_viewers(event, {"cat", "ts", "dur"});
  const int rank = read_rank(event, reading.timeline);
  const int thread = event.integer("tid", {.least = 1, .most = beside_thread});
  if (thread == idle_thread) {
    reading.timeline.idle.push_back(read_idle(event, rank));
    return;
  }
  const std::string action = event.text("name");
  JsonObject args(event.diagnostics(), event.child("args"));
  const auto [start, end] = read_times(args, action);
  read_critical(args, reading);
  const Seconds shards = args.seconds("shards_s", Seconds{});
  if (shards > end - start)
    args.error("shards_s", "it is a part of the span " + action + ", and longer than that");
  const Seconds late = args.seconds("late_s", Seconds{});
  if (late > shards)
    args.error("late_s",
               "it is a part of shards_s of the span " + action + ", and longer than that");
  reading.timeline.spans.push_back({rank, row_of(thread), action, start, end, shards, late});
}

MemorySample read_memory(JsonObject& event, const Timeline& timeline) {
  allow_for_viewers(event, {"ts"});
  event.choice("name", {"memory"});
  MemorySample sample;
  sample.rank = read_rank(event, timeline);
  sample.time = event.seconds("time_s");
  JsonObject args(event.diagnostics(), event.child("args"));
  sample.held = args.bytes("held_bytes");
  return sample;
}

void read_event(Diagnostics& diagnostics, const std::string& pointer, Reading& reading) {
  JsonObject event(diagnostics, pointer);
  // An unknown phase is read as the first word, for which nothing more of the event is read.
  const std::string phase = event.choice("ph", {"M", "s", "f", "X", "C"});
  if (phase == "X")
    read_span(event, reading);
  else if (phase == "C")
    reading.timeline.memory.push_back(read_memory(event, reading.timeline));
  else
    allow_for_viewers(event, {"name", "cat", "bp", "id", "pid", "tid", "ts", "dur", "args"});
}

}  // namespace

std::string to_trace(const Timeline& timeline) {
  EventList events;
  const auto threads = threads_of(timeline.spans, timeline.ranks);
  add_names(events, timeline, threads);
  add_spans(events, timeline, threads);
  for (const IdleSpan& idle : timeline.idle)
    add_idle(events, idle);
  for (const MemorySample& sample : timeline.memory)
    add_memory(events, sample);
  int flow = 0;
  for (const auto& [send, receive] : transfers_of(timeline))
    add_flow(events, flow++, timeline.spans[send], timeline.spans[receive]);

  const Json header = {{"format", format},
                       {"name", timeline.name},
                       {"ranks", timeline.ranks},
                       {"length_s", timeline.length.value}};
  return "{\"displayTimeUnit\":\"ms\",\n\"otherData\":" + header.dump() + ",\n\"traceEvents\":[" +
         events.text() + "\n]}\n";
}

Timeline timeline_from_trace(const JsonDocument& document) {
  Diagnostics diagnostics(document);
  Reading reading;
  std::vector<std::string> events;
  {
    JsonObject root(diagnostics);
    root.allow("displayTimeUnit");
    read_header(root, reading.timeline);
    events = root.elements("traceEvents");
  }
  diagnostics.throw_if_any();

  // An error in one event often repeats in all of them; a few more are enough to show the pattern.
  int events_after_error = 100;
  for (const std::string& event : events) {
    read_event(diagnostics, event, reading);
    if (!diagnostics.empty() && --events_after_error == 0)
      break;
  }
  diagnostics.throw_if_any();
  for (const auto& [step, span] : reading.critical)
    reading.timeline.critical.push_back(span);
  return std::move(reading.timeline);
}

}  // namespace pipewright::plan
