#pragma once

// The times of every instruction of a Program, from any engine. They are flat arrays, because
// programs have millions of instructions; `timeline_of` converts them to the Timeline that is
// drawn, written and compared.

#include <algorithm>
#include <vector>

#include "pipewright/plan/timeline/timeline.hpp"
#include "pipewright/sim/structure/structure.hpp"

namespace pipewright::sim {

/// The times of one event, in seconds from the start of the iteration.
struct EventTimes {
  double start = 0;
  double released = 0;  // a transfer releases its queue and link, compute its rank
  double end = 0;       // a transfer has arrived, compute has produced its output

  /// Returns when the event no longer needs the memory that it works on.
  double lets_go() const { return std::min(released, end); }
  /// Returns when its rank can compute something else, for events that occupy compute.
  double leaves_rank() const { return std::max(released, end); }
};

struct Times {
  double iteration = 0;                  // the last end
  plan::LargeVector<EventTimes> events;  // numbered as in Structure

  const EventTimes& operator[](int event) const { return events[static_cast<std::size_t>(event)]; }
};

/// Returns a Timeline of spans only; memory comes from `memory.hpp`.
plan::Timeline timeline_of(const Structure& structure, const Times& times);

}  // namespace pipewright::sim
