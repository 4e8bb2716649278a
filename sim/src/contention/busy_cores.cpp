#include "busy_cores.hpp"

#include <algorithm>
#include <limits>

#include "structure/event_start.hpp"

namespace pipewright::sim {

BusyCores::BusyCores(const Structure& structure, const StepCosts& costs, const Durations& alone,
                     const Durations& contended)
    : structure_(structure),
      alone_(alone),
      contended_(contended),
      cores_(costs.busy_cores),
      members_(costs.members()),
      timed_(static_cast<std::size_t>(structure.size())),
      pending_(structure.events().predecessor_counts()) {
  for (std::size_t rank = 0; rank < structure.program().ranks.size(); ++rank)
    node_of_rank_.push_back(plan::node_of(costs.cluster, costs.device(static_cast<int>(rank), 0)));
  busy_.assign(1 + *std::max_element(node_of_rank_.begin(), node_of_rank_.end()), 0);
  for (const TimedEvent& event : structure.timed_events())
    timed_[static_cast<std::size_t>(event.event)] = &event;
}

void BusyCores::run(Times& times) {
  times.events.resize(static_cast<std::size_t>(structure_.size()));
  times_ = times.events.data();
  const plan::LargeVector<int> all = pending_;
  for (int event = 0; event < structure_.size(); ++event)
    if (all[static_cast<std::size_t>(event)] == 0)
      ready(event);
  while (!waiting_.empty() || !running_.empty()) {
    const auto first =
        std::min_element(running_.begin(), running_.end(),
                         [](const Running& a, const Running& b) { return a.end() < b.end(); });
    const double end =
        first == running_.end() ? std::numeric_limits<double>::infinity() : first->end();
    if (!waiting_.empty() && waiting_.top().start <= end) {
      const Waiting next = waiting_.top();
      waiting_.pop();
      begin(next);
    } else {
      finish(static_cast<std::size_t>(first - running_.begin()));
    }
  }
  times.iteration = 0;
  for (const EventTimes& event : times.events)
    times.iteration = std::max(times.iteration, event.end);
}

/// Called when all events that the event waits for have their times.
void BusyCores::ready(int event) {
  const TimedEvent& own = *timed_[static_cast<std::size_t>(event)];
  const double start = start_of(structure_, own, times_);
  if (plan::is_compute(structure_.events()[event].instruction->kind)) {
    waiting_.push({start, event});
    return;
  }
  times_[event] = own.kind == TimedEvent::Kind::Receive
                      ? times_of_receive(start, times_[own.data])
                      : times_of(start, alone_.of(structure_, event));
  settle(event);
}

/// Called when the event has its times: marks the events as ready that waited only for it.
void BusyCores::settle(int event) {
  const plan::Dependencies& events = structure_.events();
  for (const auto* edge = events.begin(event); edge != events.end(event); ++edge)
    if (--pending_[static_cast<std::size_t>(edge->event)] == 0)
      ready(edge->event);
}

void BusyCores::begin(const Waiting& waiting) {
  const int rank = structure_.events()[waiting.event].rank;
  const int node = node_of_rank_[static_cast<std::size_t>(rank)];
  times_[waiting.event].start = waiting.start;
  running_.push_back({waiting.event, node, waiting.start, 1, 0});
  change_busy(node, members_, waiting.start);
}

void BusyCores::finish(std::size_t running) {
  const Running done = running_[running];
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(running));
  times_[done.event].end = done.end();
  times_[done.event].released = done.end() + alone_.of(structure_, done.event).latency;
  change_busy(done.node, -members_, done.end());
  settle(done.event);
}

/// Changes the number of busy ranks on a node, which changes the speed of all that run there.
void BusyCores::change_busy(int node, int by, double now) {
  busy_[static_cast<std::size_t>(node)] += by;
  for (Running& other : running_) {
    if (other.node != node)
      continue;
    const double changed = duration(other.event, node);
    if (changed == other.duration)
      continue;
    if (other.duration > 0)
      other.left = std::max(0.0, other.end() - now) / other.duration;
    other.since = now;
    other.duration = changed;
  }
}

double BusyCores::duration(int event, int node) const {
  const double alone = alone_.of(structure_, event).held;
  const double contended = contended_.of(structure_, event).held;
  const int busy = std::min(busy_[static_cast<std::size_t>(node)], cores_);
  return alone + (contended - alone) * (busy - 1) / (cores_ - 1);
}

}  // namespace pipewright::sim
