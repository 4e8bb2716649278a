#include "pipewright/sim/engine/simulator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "contention/busy_cores.hpp"
#include "network/cluster_links.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/sim/contention/contention.hpp"
#include "pipewright/sim/network/shared_links.hpp"
#include "structure/event_start.hpp"
#include "structure/reduced_graph.hpp"

namespace pipewright::sim {
namespace {

/// Throws InputError if the iteration is not finite, before anything is derived from its times.
double finite(double iteration_s) {
  if (!std::isfinite(iteration_s))
    throw plan::InputError(
        fmt::format("an iteration takes {} s: a time, a bandwidth or the jitter is too large or "
                    "too small to be simulated",
                    iteration_s));
  return iteration_s;
}

}  // namespace

Simulator::Simulator(const Structure& structure) : structure_(structure) {}

double Simulator::iteration(const StepCosts& costs) {
  if (!costs.contended.empty() || with_overheads(structure_, costs))
    return run(costs).iteration;
  const ReducedGraph* const reduced = structure_.reduced();
  if (reduced == nullptr)
    return run(costs).iteration;
  durations_.fill(structure_, costs);
  reduced->fill_costs(durations_, node_costs_);
  return finite(reduced->longest_path(durations_, node_costs_, node_ends_));
}

const Times& Simulator::run(const StepCosts& costs) {
  durations_.fill(structure_, costs);
  if (!costs.contended.empty())
    return run_contended(costs);
  const bool by_event = durations_.by_event();
  const EventCost* const table = durations_.table().data();
  times_.events.resize(static_cast<std::size_t>(structure_.size()));
  EventTimes* const times = times_.events.data();
  double last = 0;
  for (const TimedEvent& event : structure_.timed_events()) {
    const double start = start_of(structure_, event, times);
    EventTimes& own = times[event.event];
    if (event.kind == TimedEvent::Kind::Receive) {
      own = times_of_receive(start, times[event.data]);
    } else {
      const EventCost& cost = table[by_event ? event.event : event.cost_class];
      own = event.kind == TimedEvent::Kind::Compute ? times_of_compute(start, cost)
                                                    : times_of(start, cost);
    }
    last = std::max(last, own.end);
  }
  times_.iteration = finite(last);
  structure_.begin_together(times_);
  return times_;
}

const Times& Simulator::run_shared(const StepCosts& costs) {
  if (has_factors_by_copy(structure_, costs)) {
    times_ = simulate_shared_links(structure_, costs);
    finite(times_.iteration);
    return times_;
  }
  run(costs);
  if (narrows_inside(costs.cluster) || !shared_link_overlaps(structure_, costs, times_).empty())
    times_ = simulate_shared_links(structure_, costs);
  finite(times_.iteration);
  return times_;
}

const Times& Simulator::run_contended(const StepCosts& costs) {
  contended_.fill(structure_, costs, costs.contended);
  BusyCores(structure_, costs, durations_, contended_).run(times_);
  finite(times_.iteration);
  structure_.begin_together(times_);
  return times_;
}

}  // namespace pipewright::sim
