#pragma once

// The engine for a whole job, with each device on its own. All data-parallel pipelines have one
// Structure, but their own durations, links and speeds, and meet in their all-reduces. It visits
// events in the native engine's order, each for all members in turn, so that a job of tens of
// thousands of devices needs only the graph of one pipeline.

#include <cstddef>
#include <string>
#include <vector>

#include "pipewright/sim/structure/durations.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

/// An allocator for tables whose memory is first touched by the core that fills them.
struct UninitializedTimes : plan::LargePages<EventTimes> {
  template <class Other>
  struct rebind {
    using other = UninitializedTimes;
  };
  void construct(EventTimes* /*place*/) {}
};

/// The times of every event on every device. Member m of a rank is tensor-parallel rank m mod
/// `shards` of data-parallel replica m / `shards`, as in StepCosts.
class JobTimes {
 public:
  double iteration() const { return iteration_; }
  int members() const { return members_; }
  const EventTimes& of(int event, int member) const {
    return times_[block_of(member) * block_size() + static_cast<std::size_t>(event) * width_ +
                  static_cast<std::size_t>(member) % width_];
  }
  /// Returns by member the last end of its ranks' own work, before the events that join all
  /// pipelines.
  const std::vector<double>& ready() const { return ready_; }

 private:
  friend class JobSimulator;

  std::size_t block_of(int member) const { return static_cast<std::size_t>(member) / width_; }
  std::size_t block_size() const { return events_ * width_; }

  double iteration_ = 0;
  int members_ = 0;
  std::size_t events_ = 0;
  std::size_t width_ = 1;  // members that are adjacent in memory, event by event
  std::vector<EventTimes, UninitializedTimes> times_;
  std::vector<double> ready_;
};

/// The engine of one job. It uses all cores.
class JobSimulator {
 public:
  /// `structure` must outlive it.
  explicit JobSimulator(const Structure& structure);

  /// Returns why these costs cannot be timed, or an empty string. Ranks that affect each other need
  /// a clock (shared links, cores of a node), and so do transfers that occupy their ranks.
  static std::string obstacle(const Structure& structure, const StepCosts& costs);

  /// Times the job. The tensor-parallel ranks of a replica run in lockstep: their compute begins
  /// when the last of them is ready, and ends with the slowest. The replicas of a tensor-parallel
  /// rank all-reduce gradients with each other; scalars are reduced over all. The answer stays
  /// valid until the next call. Throws InputError if there is an obstacle.
  const JobTimes& run(const StepCosts& costs);

 private:
  /// Consecutive events in the order, up to one in which members of several blocks meet.
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
