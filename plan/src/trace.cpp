// Timelines as Chrome Trace Event JSON. Viewers read `ts` and `dur`, which are microseconds and
// therefore rounded; this reader takes the exact seconds that stand beside them.

#include <algorithm>
#include <array>
#include <cassert>
#include <unordered_map>

#include "pipewright/plan/program.hpp"
#include "pipewright/plan/timeline.hpp"

namespace pipewright::plan {
namespace {

constexpr const char* format = "pipewright/timeline/1";
constexpr int most_ranks = 1'000'000;

constexpr std::array<const char*, 3> lane_names{"compute", "send", "receive"};

/// Thread numbers begin at 1: viewers take thread 0 for the idle task.
int thread_of(Lane lane) { return static_cast<int>(lane) + 1; }
Lane lane_of(int thread) { return static_cast<Lane>(thread - 1); }

double microseconds(Seconds time) { return time.value * 1e6; }

/// The events as text, one a line, so that a file of many spans can be read and compared by line.
class EventList {
 public:
  void add(const Json& event) {
    text_ += text_.empty() ? "\n" : ",\n";
    text_ += event.dump();
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void add_names(EventList& events, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    events.add({{"name", "process_name"},
                {"ph", "M"},
                {"pid", rank},
                {"args", {{"name", "rank " + std::to_string(rank)}}}});
    for (const Lane lane : {Lane::Compute, Lane::Send, Lane::Receive})
      events.add({{"name", "thread_name"},
                  {"ph", "M"},
                  {"pid", rank},
                  {"tid", thread_of(lane)},
                  {"args", {{"name", lane_names[static_cast<std::size_t>(lane)]}}}});
  }
}

void add_span(EventList& events, const Span& span) {
  events.add({{"name", span.action},
              {"cat", kind_of(span.action)},
              {"ph", "X"},
              {"pid", span.rank},
              {"tid", thread_of(span.lane)},
              {"ts", microseconds(span.start)},
              {"dur", microseconds(span.end - span.start)},
              {"args", {{"start_s", span.start.value}, {"end_s", span.end.value}}}});
}

/// The exact time stands outside `args`: a viewer draws every value in there as a curve.
void add_memory(EventList& events, const MemorySample& sample) {
  events.add({{"name", "memory"},
              {"ph", "C"},
              {"pid", sample.rank},
              {"ts", microseconds(sample.time)},
              {"time_s", sample.time.value},
              {"args", {{"held_bytes", sample.held.value}}}});
}

/// One arrow from a send to its receive. A receive may have waited since before the send began, and
/// an arrow must not point back in time.
void add_flow(EventList& events, int id, const Span& send, const Span& receive) {
  events.add({{"name", "transfer"},
              {"cat", "transfer"},
              {"ph", "s"},
              {"id", id},
              {"pid", send.rank},
              {"tid", thread_of(send.lane)},
              {"ts", microseconds(send.start)}});
  events.add({{"name", "transfer"},
              {"cat", "transfer"},
              {"ph", "f"},
              {"bp", "e"},  // ends at the span around it, not at the next one
              {"id", id},
              {"pid", receive.rank},
              {"tid", thread_of(receive.lane)},
              {"ts", microseconds(std::max(send.start, receive.start))}});
}

/// Pairs each send with its receive: "0SEND_F2" with "1RECV_F2". Where the same text stands several
/// times, as with replicas, the first send goes with the first receive and so on.
void add_flows(EventList& events, const std::vector<Span>& spans) {
  std::unordered_map<std::string, std::vector<const Span*>> receives;
  for (const Span& span : spans)
    if (span.lane == Lane::Receive)
      receives[span.action].push_back(&span);

  std::unordered_map<std::string, std::size_t> taken;
  int id = 0;
  for (const Span& span : spans) {
    if (span.lane != Lane::Send)
      continue;
    const auto send = parse_instruction(span.action);
    if (!send || !is_send(send->kind))
      continue;
    const std::string wanted = to_string(counterpart(*send));
    const auto found = receives.find(wanted);
    if (found == receives.end() || taken[wanted] == found->second.size())
      continue;
    add_flow(events, id++, span, *found->second[taken[wanted]++]);
  }
}

void read_header(JsonObject& root, Timeline& timeline) {
  JsonObject header(root.diagnostics(), root.child("otherData"));
  header.choice("format", {format});
  timeline.name = header.text("name");
  timeline.ranks = header.integer("ranks", {.least = 1, .most = most_ranks});
  timeline.length = header.seconds("length_s");
}

/// Keys that are there for viewers: they repeat what is read elsewhere.
void allow_for_viewers(JsonObject& event, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    event.allow(key);
}

int read_rank(JsonObject& event, const Timeline& timeline) {
  return event.integer("pid", {.least = 0, .most = timeline.ranks - 1.0});
}

Span read_span(JsonObject& event, const Timeline& timeline) {
  allow_for_viewers(event, {"cat", "ts", "dur"});
  Span span;
  span.rank = read_rank(event, timeline);
  span.lane = lane_of(event.integer("tid", {.least = 1, .most = lane_names.size() * 1.0}));
  span.action = event.text("name");
  JsonObject args(event.diagnostics(), event.child("args"));
  span.start = args.seconds("start_s");
  span.end = args.seconds("end_s");
  if (span.end < span.start)
    args.error("end_s", "the span " + span.action + " ends before it starts");
  return span;
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

void read_event(Diagnostics& diagnostics, const std::string& pointer, Timeline& timeline) {
  JsonObject event(diagnostics, pointer);
  // The first word is what an unknown one is taken for: nothing more is then read of the event.
  const std::string phase = event.choice("ph", {"M", "s", "f", "X", "C"});
  if (phase == "X")
    timeline.spans.push_back(read_span(event, timeline));
  else if (phase == "C")
    timeline.memory.push_back(read_memory(event, timeline));
  else
    allow_for_viewers(event, {"name", "cat", "bp", "id", "pid", "tid", "ts", "dur", "args"});
}

}  // namespace

std::string to_trace(const Timeline& timeline) {
  EventList events;
  add_names(events, timeline.ranks);
  for (const Span& span : timeline.spans)
    add_span(events, span);
  for (const MemorySample& sample : timeline.memory)
    add_memory(events, sample);
  add_flows(events, timeline.spans);

  const Json header = {{"format", format},
                       {"name", timeline.name},
                       {"ranks", timeline.ranks},
                       {"length_s", timeline.length.value}};
  return "{\"displayTimeUnit\":\"ms\",\n\"otherData\":" + header.dump() + ",\n\"traceEvents\":[" +
         events.text() + "\n]}\n";
}

Timeline timeline_from_trace(const JsonDocument& document) {
  Diagnostics diagnostics(document);
  Timeline timeline;
  std::vector<std::string> events;
  {
    JsonObject root(diagnostics);
    root.allow("displayTimeUnit");
    read_header(root, timeline);
    events = root.elements("traceEvents");
  }
  diagnostics.throw_if_any();

  // What is wrong with one event is often wrong with all; some more of them show the pattern.
  int events_after_error = 100;
  for (const std::string& event : events) {
    read_event(diagnostics, event, timeline);
    if (!diagnostics.empty() && --events_after_error == 0)
      break;
  }
  diagnostics.throw_if_any();
  return timeline;
}

}  // namespace pipewright::plan
