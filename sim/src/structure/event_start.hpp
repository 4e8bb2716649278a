#pragma once

// The start of an event of a Structure and the end of a transfer, from the ends of the events that
// they wait for: the rules of docs/time-and-memory.md in one place, for the inner loop of each
// engine.

#include <algorithm>

#include "pipewright/sim/structure/durations.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

/// Returns when an event starts. A receive starts when it is posted. `times[event]` are the times
/// of an earlier event.
template <class TimesOf>
double start_of(const Structure& structure, const TimedEvent& event, const TimesOf& times) {
  double start = 0;
  if (event.compute >= 0)
    start = event.kind == TimedEvent::Kind::Compute ? times[event.compute].leaves_rank()
                                                    : times[event.compute].end;
  if (event.queue >= 0)
    start = std::max(start, times[event.queue].released);
  if (event.kind == TimedEvent::Kind::Compute && event.data >= 0)
    start = std::max(start, times[event.data].end);
  if (event.kind == TimedEvent::Kind::Other)
    // Sends that may wait for their receiver, reductions, and events that wait for reductions.
    structure.events().for_each_predecessor(event.event, [&](int predecessor, plan::Until until) {
      const EventTimes& before = times[predecessor];
      start = std::max(start, until == plan::Until::Done ? before.end : before.released);
    });
  return start;
}

/// Returns the times of transfers, and of events that neither compute nor transfer.
inline EventTimes times_of(double start, const EventCost& cost) {
  return {start, start + cost.held, start + cost.held + cost.latency};
}

inline EventTimes times_of_compute(double start, const EventCost& cost) {
  return {start, start + cost.held + cost.latency, start + cost.held};
}

inline EventTimes times_of_receive(double start, const EventTimes& send) {
  return {start, std::max(start, send.released), std::max(start, send.end)};
}

}  // namespace pipewright::sim
