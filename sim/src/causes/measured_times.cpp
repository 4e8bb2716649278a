#include "pipewright/sim/causes/measured_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/timeline/shard_waits.hpp"
#include "pipewright/plan/timeline/spans_by_action.hpp"
#include "pipewright/sim/causes/critical_path.hpp"
#include "pipewright/sim/causes/idle.hpp"

namespace pipewright::sim {
namespace {

/// Extends each transfer to its arrival if its receiver waited for it.
void join_transfers(const Structure& structure, Times& times) {
  const plan::Dependencies& events = structure.events();
  for (int event = 0; event < structure.size(); ++event)
    if (plan::is_send(events[event].instruction->kind)) {
      EventTimes& send = times.events[static_cast<std::size_t>(event)];
      const EventTimes& receive = times[events[event].partner];
      if (receive.end > receive.start)
        send.end = std::max(send.end, receive.end);
    }
}

/// Starts each collective when its last member has reached it: the members' waits for each other do
/// not count.
void join_collectives(const Structure& structure, Times& times) {
  const plan::Dependencies& events = structure.events();
  for (int event = 0; event < structure.size(); ++event) {
    const int leader = events.leader_of(event);
    if (leader == event)
      continue;
    EventTimes& all = times.events[static_cast<std::size_t>(leader)];
    all.start = std::min(std::max(all.start, times[event].start), all.end);
  }
  structure.begin_together(times);
}

/// Lets the second action of a fused pair start when the first ends: executed alternately, they
/// take as long as both would one after the other.
void join_pairs(const Structure& structure, Times& times) {
  for (int event = 0; event < structure.size(); ++event) {
    const int other = structure.pair_of(event);
    if (other < event)
      continue;
    const EventTimes& first = times[event];
    EventTimes& second = times.events[static_cast<std::size_t>(other)];
    if (second.start >= first.end)
      continue;
    second.start = first.end;
    second.end = second.released = std::max(second.end, first.end);
  }
}

}  // namespace

// Data that were sent long before the receive was posted had arrived by then, and the receive took
// only the time to take them. So if more of the time from the send to the receive's end lies before
// the receive than in it, the receive did not wait.
bool waited_for(const Structure& structure, const Times& measured, int receive) {
  const EventTimes& taken = measured[receive];
  const double sent = measured[structure.events()[receive].partner].start;
  return taken.end - std::max(taken.start, sent) >= taken.start - sent;
}

std::vector<std::size_t> spans_of(const Structure& structure, const plan::Timeline& measured) {
  const auto ranks = static_cast<int>(structure.program().ranks.size());
  if (measured.ranks != ranks)
    throw plan::InputError(
        fmt::format("the timeline has {} ranks, but the program has {}", measured.ranks, ranks));
  std::vector<std::size_t> span_of;
  span_of.reserve(static_cast<std::size_t>(structure.size()));
  plan::SpansByAction spans = plan::spans_by_action(measured);
  std::map<std::pair<int, std::string>, std::size_t> taken;
  for (int event = 0; event < structure.size(); ++event) {
    const auto& own = structure.events()[event];
    const std::pair name{own.rank, to_string(*own.instruction)};
    const auto& found = spans[name];
    const std::size_t next = taken[name]++;
    if (next >= found.size())
      throw plan::InputError(
          fmt::format("the timeline has no span of {} on rank {}, which the "
                      "program runs: they are not from the same run",
                      name.second, name.first));
    span_of.push_back(static_cast<std::size_t>(found[next] - measured.spans.data()));
  }
  for (const auto& [name, found] : spans)
    if (found.size() > taken[name])
      throw plan::InputError(
          fmt::format("the timeline has {} on rank {}, which the program does "
                      "not run there: they are not from the same run",
                      name.second, name.first));
  return span_of;
}

Times times_of(const Structure& structure, const plan::Timeline& measured,
               const std::vector<std::size_t>& spans) {
  Times times;
  times.iteration = measured.length.value;
  times.events.reserve(spans.size());
  for (const std::size_t at : spans) {
    const plan::Span& span = measured.spans[at];
    times.events.push_back({span.start.value, span.end.value, span.end.value});
  }
  join_pairs(structure, times);
  join_transfers(structure, times);
  join_collectives(structure, times);
  return times;
}

Times times_of(const Structure& structure, const plan::Timeline& measured) {
  return times_of(structure, measured, spans_of(structure, measured));
}

plan::Timeline with_idle_causes(const Structure& structure, plan::Timeline measured) {
  measured.idle = IdleCauses(structure).of(times_of(structure, measured)).spans;
  return plan::with_shard_waits(std::move(measured));
}

std::vector<int> measured_critical_path(const Structure& structure, Times measured) {
  const plan::Dependencies& events = structure.events();
  for (int event = 0; event < structure.size(); ++event)
    if (plan::is_send(events[event].instruction->kind)) {
      EventTimes& send = measured.events[static_cast<std::size_t>(event)];
      const int receive = events[event].partner;
      if (!waited_for(structure, measured, receive))
        send.end = send.released = std::min(send.end, measured[receive].start);
    }
  return critical_path(structure, measured);
}

}  // namespace pipewright::sim
