#pragma once

// Models ranks that slow each other down while they compute concurrently, because their cores share
// caches and memory. The duration of an action then depends on the other ranks, so a clock advances
// from one start or end of compute to the next, between which all run at constant speed.

#include <queue>
#include <vector>

#include "pipewright/sim/structure/durations.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

/// One run. If k ranks of a node compute, an action takes
///
///   alone + (contended - alone) (min(k, n) - 1)/(n - 1)
///
/// where `contended` was measured with n of them. All data-parallel pipelines do the same at the
/// same time, so a rank counts as many times as there are pipelines.
class BusyCores {
 public:
  BusyCores(const Structure& structure, const StepCosts& costs, const Durations& alone,
            const Durations& contended);
  void run(Times& times);

 private:
  /// Compute whose start time is known.
  struct Waiting {
    double start = 0;
    int event = 0;
    friend bool operator>(const Waiting& a, const Waiting& b) {
      return std::pair(a.start, a.event) > std::pair(b.start, b.event);
    }
  };
  /// Compute in progress. At its speed since `since`, all of it would take `duration`.
  struct Running {
    int event = 0;
    int node = 0;
    double since = 0;
    double left = 1;  // of the work, at `since`
    double duration = 0;
    double end() const { return since + left * duration; }
  };

  void ready(int event);
  void settle(int event);
  void begin(const Waiting& waiting);
  void finish(std::size_t running);
  void change_busy(int node, int by, double now);
  double duration(int event, int node) const;

  const Structure& structure_;
  const Durations& alone_;
  const Durations& contended_;
  int cores_;
  int members_;
  std::vector<int> node_of_rank_;
  std::vector<int> busy_;                 // by node
  std::vector<const TimedEvent*> timed_;  // by event
  plan::LargeVector<int> pending_;        // by event: number of events that it still waits for
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
  std::vector<Running> running_;
  EventTimes* times_ = nullptr;
};

}  // namespace pipewright::sim
