#pragma once

// The native engine: times any valid Program by the rules of docs/time-and-memory.md. All orders
// are fixed by the Program, so the answer is the longest path through a graph: exact, with no event
// queue and no step size. Only where ranks of a node slow each other down, a clock goes from one
// start or end of compute to the next, and the answer is exact again.

#include <vector>

#include "pipewright/sim/structure/durations.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

/// One per thread: it keeps its working memory, so that timing again allocates nothing.
class Simulator {
 public:
  /// `structure` must outlive it.
  explicit Simulator(const Structure& structure);

  /// The iteration time alone, the quick way, with the same bits as `run(costs).iteration`.
  double iteration(const StepCosts& costs);
  /// When everything ran. The answer stays valid until the next call.
  const Times& run(const StepCosts& costs);
  /// The same, but transfers that overlap on a shared link share its bandwidth (shared_links.hpp).
  /// Costs nothing where the cluster shares none, and copies of the ranks are alike.
  const Times& run_shared(const StepCosts& costs);
  /// What the last call's events take where no rank minds others.
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
