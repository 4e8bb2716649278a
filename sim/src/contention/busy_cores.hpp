#pragma once

// Ranks that slow each other down while they compute at once, because their cores share caches and
// memory. How long an action takes then hangs on what the others do meanwhile, so a clock goes from
// one start or end of compute to the next, and in between all go on at a constant speed.

#include <queue>
#include <vector>

#include "pipewright/sim/structure/durations.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

/// One run. With k ranks of a node at work an action takes
///
///   alone + (contended - alone) (min(k, n) - 1)/(n - 1)
///
/// where `contended` was measured with n of them. Each of the pipelines side by side does the same
/// at the same time, so a rank counts for as many as there are.
class BusyCores {
 public:
  BusyCores(const Structure& structure, const StepCosts& costs, const Durations& alone,
            const Durations& contended);
  void run(Times& times);

 private:
  /// Compute whose start is known.
  struct Waiting {
    double start = 0;
    int event = 0;
    friend bool operator>(const Waiting& a, const Waiting& b) {
      return std::pair(a.start, a.event) > std::pair(b.start, b.event);
    }
  };
  /// Compute under way: from `since` on it takes `duration` for the whole of it.
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
  plan::LargeVector<int> pending_;        // by event: what it still waits for
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
  std::vector<Running> running_;
  EventTimes* times_ = nullptr;
};

}  // namespace pipewright::sim
