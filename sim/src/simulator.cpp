#include "pipewright/sim/simulator.hpp"

#include <algorithm>

#include "reduced_graph.hpp"

namespace pipewright::sim {

Simulator::Simulator(const Structure& structure) : structure_(structure) {}

double Simulator::iteration(const StepCosts& costs) {
  durations_.fill(structure_, costs);
  structure_.reduced().fill_costs(durations_, node_costs_);
  return structure_.reduced().longest_path(durations_, node_costs_, node_ends_);
}

const Times& Simulator::run(const StepCosts& costs) {
  durations_.fill(structure_, costs);
  const bool by_event = durations_.by_event();
  const EventCost* const table = durations_.table().data();
  times_.events.resize(static_cast<std::size_t>(structure_.size()));
  EventTimes* const times = times_.events.data();
  double last = 0;
  for (const TimedEvent& event : structure_.timed_events()) {
    double start = 0;
    if (event.lane >= 0)
      start = times[event.lane].end;
    if (event.queue >= 0)
      start = std::max(start, times[event.queue].released);
    EventTimes& own = times[event.event];
    switch (event.kind) {
      case TimedEvent::Kind::Compute: {
        if (event.data >= 0)
          start = std::max(start, times[event.data].end);
        own.start = start;
        own.released = own.end = start + table[by_event ? event.event : event.cost_class].held;
        break;
      }
      case TimedEvent::Kind::Receive: {
        const EventTimes& send = times[event.data];
        own = {start, std::max(start, send.released), std::max(start, send.end)};
        break;
      }
      case TimedEvent::Kind::Other: {
        // Sends, which may wait for their receiver, reductions, and who waits for them.
        structure_.events().for_each_predecessor(
            event.event, [&](int predecessor, plan::Until until) {
              const EventTimes& before = times[predecessor];
              start = std::max(start, until == plan::Until::Done ? before.end : before.released);
            });
        [[fallthrough]];
      }
      case TimedEvent::Kind::EagerSend: {
        own.start = start;
        const EventCost& cost = table[by_event ? event.event : event.cost_class];
        own.released = start + cost.held;
        own.end = own.released + cost.latency;
        break;
      }
    }
    last = std::max(last, own.end);
  }
  times_.iteration = last;
  return times_;
}

}  // namespace pipewright::sim
