#pragma once

// An independent interpreter of the timing rules, slow and simple: the reference for the engine and
// for everything derived from it.

#include <algorithm>
#include <vector>

#include "pipewright/sim/structure/durations.hpp"
#include "pipewright/sim/structure/structure.hpp"

namespace pipewright::test {

/// Returns the iteration time when one event takes `delay` longer and everything else is unchanged.
inline double iteration_with_delay(const sim::Structure& structure, const sim::Durations& durations,
                                   int delayed, double delay) {
  const auto& events = structure.events();
  const auto count = static_cast<std::size_t>(structure.size());
  std::vector<double> start(count), released(count), end(count);
  double last = 0;
  for (const int event : structure.order()) {
    const auto at = static_cast<std::size_t>(event);
    const int send = plan::is_receive(events[event].instruction->kind) ? events[event].partner : -1;
    events.for_each_predecessor(event, [&](int before, plan::Until until) {
      const auto other = static_cast<std::size_t>(before);
      if (before != send)
        start[at] = std::max(start[at], until == plan::Until::Done ? end[other] : released[other]);
    });
    const sim::EventCost cost = durations.of(structure, event);
    const double held = start[at] + cost.held + (event == delayed ? delay : 0);
    const bool computes = plan::is_compute(events[event].instruction->kind);
    released[at] = held + (computes ? cost.latency : 0);
    end[at] = held + (computes ? 0 : cost.latency);
    if (send >= 0) {
      released[at] = std::max(start[at], released[static_cast<std::size_t>(send)]);
      end[at] = std::max(start[at], end[static_cast<std::size_t>(send)]);
    }
    last = std::max(last, end[at]);
  }
  return last;
}

}  // namespace pipewright::test
