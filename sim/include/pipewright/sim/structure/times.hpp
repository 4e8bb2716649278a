#pragma once

// When every instruction of a Program ran, from whichever engine. Flat arrays, because programs
// have millions of instructions; `timeline_of` turns them into the Timeline that is drawn, written
// and compared.

#include <algorithm>
#include <vector>

#include "pipewright/plan/timeline/timeline.hpp"
#include "pipewright/sim/structure/structure.hpp"

namespace pipewright::sim {

/// In seconds from the start of the iteration.
struct EventTimes {
  double start = 0;
  double released = 0;  // a transfer lets go of its queue and link, compute of its rank
  double end = 0;       // a transfer has arrived, compute has made what it makes

  /// When it no longer needs the memory that it works on.
  double lets_go() const { return std::min(released, end); }
  /// When its rank can compute something else, of what holds compute.
  double leaves_rank() const { return std::max(released, end); }
};

struct Times {
  double iteration = 0;                  // the last end
  plan::LargeVector<EventTimes> events;  // numbered as in Structure

  const EventTimes& operator[](int event) const { return events[static_cast<std::size_t>(event)]; }
};

/// The spans alone: memory is of `memory.hpp`.
plan::Timeline timeline_of(const Structure& structure, const Times& times);

}  // namespace pipewright::sim
