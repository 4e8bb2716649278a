#pragma once

// The engine for a whole job, every device by itself: the pipelines side by side have one Structure
// and durations, links and speeds of their own, and meet in their sums. It is the plain engine's
// walk, each event for all members in turn, so that a job of ten thousands of devices needs the
// graph of one pipeline alone.

#include <cstddef>
#include <string>
#include <vector>

#include "pipewright/sim/structure/durations.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

/// For tables that whoever fills them touches first: on the core that does so.
struct UntouchedTimes : plan::LargePages<EventTimes> {
  template <class Other>
  struct rebind {
    using other = UntouchedTimes;
  };
  void construct(EventTimes* /*place*/) {}
};

/// When everything ran on every device. Member m of a rank is shard m mod `shards` of copy
/// m / `shards`, as in StepCosts.
class JobTimes {
 public:
  double iteration() const { return iteration_; }
  int members() const { return members_; }
  const EventTimes& of(int event, int member) const {
    return times_[block_of(member) * block_size() + static_cast<std::size_t>(event) * width_ +
                  static_cast<std::size_t>(member) % width_];
  }
  /// By member: the last end of what its ranks do by themselves, before what joins all pipelines.
  const std::vector<double>& ready() const { return ready_; }

 private:
  friend class JobSimulator;

  std::size_t block_of(int member) const { return static_cast<std::size_t>(member) / width_; }
  std::size_t block_size() const { return events_ * width_; }

  double iteration_ = 0;
  int members_ = 0;
  std::size_t events_ = 0;
  std::size_t width_ = 1;  // members that stand next to each other, event by event
  std::vector<EventTimes, UntouchedTimes> times_;
  std::vector<double> ready_;
};

/// One per job: it works on all cores.
class JobSimulator {
 public:
  /// `structure` must outlive it.
  explicit JobSimulator(const Structure& structure);

  /// Why these costs cannot be timed: who minds what others do needs a clock (shared links, cores
  /// of a node), or transfers that keep their ranks. Empty: they can.
  static std::string obstacle(const Structure& structure, const StepCosts& costs);

  /// The shards of a copy go in step: what they compute begins when the last of them can, and ends
  /// with the slowest. Copies of a shard sum gradients with each other; numbers go round among all.
  /// The answer stays valid until the next call. Throws InputError where there is an obstacle.
  const JobTimes& run(const StepCosts& costs);

 private:
  /// Events one after the other in the order, up to one in which members of several blocks meet.
  struct Stretch {
    std::size_t begin = 0, end = 0;
  };

  void find_stretches();
  void price(const StepCosts& costs);
  void time_block(const StepCosts& costs, const Stretch& stretch, std::size_t block);
  void time_compute(const StepCosts& costs, const TimedEvent& event, int first, EventTimes* own,
                    const double* starts) const;
  void meet(const StepCosts& costs, const TimedEvent& event);
  void begin_together(std::size_t block);
  void finish();

  int members_in(std::size_t block) const;
  EventTimes* block(std::size_t block) {
    return times_.times_.data() + block * times_.block_size();
  }
  double start_of_member(const TimedEvent& event, int member);
  const EventCost& cost(int cost_class, int member) const {
    return costs_[static_cast<std::size_t>(cost_class) * static_cast<std::size_t>(times_.members_) +
                  static_cast<std::size_t>(member)];
  }
  double held(const StepCosts& costs, const TimedEvent& event, int member) const;

  const Structure& structure_;
  std::vector<Stretch> stretches_;
  std::size_t blocks_ = 0;
  bool varies_ = false;
  plan::LargeVector<EventCost> costs_;  // by class and member
  JobTimes times_;
};

}  // namespace pipewright::sim
