#pragma once

// The native engine: times any valid Program by the rules of docs/time-and-memory.md. All orders
// are fixed by the Program, so the answer is the longest path through a graph: exact, without an
// event queue or a step size. If ranks of a node slow each other down, a clock advances from one
// start or end of compute to the next, and the answer is exact again.

#include <vector>

#include "pipewright/sim/structure/durations.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

/// The engine of one Structure. Use one per thread: it keeps its working memory, so that further
/// runs allocate nothing.
class Simulator {
 public:
  /// `structure` must outlive it.
  explicit Simulator(const Structure& structure);

  /// Returns only the iteration time, faster than `run`, with the same bits as
  /// `run(costs).iteration`.
  double iteration(const StepCosts& costs);
  /// Returns the times of all events. The answer stays valid until the next call.
  const Times& run(const StepCosts& costs);
  /// Like `run`, but transfers that overlap on a shared link share its bandwidth
  /// (shared_links.hpp). It takes no longer than `run` if the cluster shares no link and
  /// data-parallel replicas are equal.
  const Times& run_shared(const StepCosts& costs);
  /// Returns the durations of the last call's events, without slowdown by other ranks.
  const Durations& durations() const { return durations_; }

 private:
  const Times& run_contended(const StepCosts& costs);

  const Structure& structure_;
  Durations durations_;
  Durations contended_;
  Times times_;
  std::vector<EventCost> node_costs_;
  plan::LargeVector<double> node_ends_;
};

}  // namespace pipewright::sim
