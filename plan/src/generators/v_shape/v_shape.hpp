#pragma once

// The V shape in numbers. A microbatch makes 4P hops, and each needs only the hop before it:
//
//    hop  0 .. P-1    forward down the ranks        hop 2P .. 3P-1   input gradients down again
//    hop  P .. 2P-1   forward up again              hop 3P .. 4P-1   input gradients up
//
// A run of P hops is a leg, and every rank has one hop of each leg. A weight gradient depends on
// the input gradient of its hop.

#include <cassert>
#include <cstddef>
#include <vector>

#include "pipewright/plan/costs/schedule_costs.hpp"
#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

constexpr int v_legs = 4;

int hop_of_leg(int leg, int rank, int ranks);
int rank_of_hop(int hop, int ranks);
Action action_of_hop(int hop, int microbatch, int ranks);

/// Returns the hop of a forward or an input gradient, or, for a weight gradient, the hop it depends
/// on.
inline int hop_of(const Action& action, int ranks) {
  return action.kind == ActionKind::Forward ? action.stage : 4 * ranks - 1 - action.stage;
}

/// Returns true if the hop needs a transfer. The first hop and those at which the V turns do not.
inline bool comes_from_another_rank(int hop, int ranks) { return hop % ranks != 0; }

/// Returns one cost of each kind, which is the mean if the stages differ. Throws InputError that
/// names the schedule if sizes or costs are out of range.
ScheduleCosts checked_v_costs(const char* schedule, int ranks, int microbatches,
                              const ScheduleCosts& costs);
double duration_of(const Action& action, const ScheduleCosts& costs);

/// The activations that a rank keeps, counted in two ways: in units, and as activations that stay
/// until their weight gradient.
struct Kept {
  int units = 0;
  int whole = 0;

  Kept& operator+=(const Kept& other) {
    units += other.units;
    whole += other.whole;
    return *this;
  }
  friend Kept operator+(Kept a, const Kept& b) { return a += b; }
  bool fits(const Kept& limit) const { return units <= limit.units && whole <= limit.whole; }
};

/// Returns what an action adds to the kept activations.
inline Kept kept_by(ActionKind kind) {
  switch (kind) {
    case ActionKind::Forward:
      return {2, 1};
    case ActionKind::InputGradient:
      return {-1, 0};
    case ActionKind::WeightGradient:
      return {-1, -1};
    case ActionKind::Backward:
      return {-2, -1};
    case ActionKind::Recompute:
      return {};
  }
  assert(false);
  return {};
}

/// Returns the peak of each rank.
std::vector<Kept> peaks_of(const Schedule& schedule);

/// The end of each hop of each microbatch, as far as it is known.
class HopEnds {
 public:
  HopEnds(int ranks, int microbatches);
  double operator()(int hop, int microbatch) const { return ends_[index(hop, microbatch)]; }
  void set(int hop, int microbatch, double end) { ends_[index(hop, microbatch)] = end; }
  void clear();

  /// `can_start` returns true if the hop's input has a known end; `ready` returns when the input is
  /// available on the hop's rank.
  bool can_start(int hop, int microbatch) const {
    return hop == 0 || (*this)(hop - 1, microbatch) >= 0;
  }
  double ready(int hop, int microbatch, Seconds transfer) const {
    if (hop == 0)
      return 0;
    return (*this)(hop - 1, microbatch) +
           (comes_from_another_rank(hop, ranks_) ? transfer.value : 0);
  }

 private:
  std::size_t index(int hop, int microbatch) const {
    const auto hops = static_cast<std::size_t>(v_legs) * static_cast<std::size_t>(ranks_);
    return static_cast<std::size_t>(microbatch) * hops + static_cast<std::size_t>(hop);
  }

  int ranks_;
  std::vector<double> ends_;  // by microbatch, then hop; negative if unknown
};

/// The start of each action of each rank, if every rank runs its list in order and as early as
/// possible.
using StartTimes = std::vector<std::vector<double>>;
StartTimes start_times(const Schedule& schedule, const ScheduleCosts& costs);

/// The longest span of a rank, from its first start to its last end, and the latest end of all
/// ranks.
struct Times {
  double makespan = 0;
  double end = 0;
};
Times times_of(const Schedule& schedule, const ScheduleCosts& costs);

}  // namespace pipewright::plan
