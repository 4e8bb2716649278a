#pragma once

// The V shape in numbers. A microbatch makes 4P hops, of which each needs only the one before:
//
//   hop  0 .. P-1    forward down the ranks        hop 2P .. 3P-1   input gradients down again
//   hop  P .. 2P-1   forward up again              hop 3P .. 4P-1   input gradients up
//
// A run of P hops is a leg; every rank has one hop of each leg. Weight gradients hang off their
// hop.

#include <vector>

#include "pipewright/plan/v_schedules.hpp"

namespace pipewright::plan {

constexpr int v_legs = 4;

int rank_of_hop(int hop, int ranks);
int hop_of_leg(int leg, int rank, int ranks);
Action action_of_hop(int hop, int microbatch, int ranks);

/// The hop of a forward or an input gradient; for a weight gradient the hop that it needs.
int hop_of(const Action& action, int ranks);

/// Only a hop that comes from another rank needs a transfer: not the first, not those that turn.
bool comes_from_another_rank(int hop, int ranks);

double duration_of(ActionKind kind, const VCosts& costs);

/// What an action adds to the kept activations, in units.
int units_of(ActionKind kind);

/// When each hop of each microbatch ends, as far as is known.
class HopEnds {
 public:
  HopEnds(int ranks, int microbatches);
  bool known(int hop, int microbatch) const;
  double operator()(int hop, int microbatch) const;
  void set(int hop, int microbatch, double end);

  /// Whether what the hop needs has an end, and when that is at hand on the hop's rank.
  bool can_start(int hop, int microbatch) const;
  double ready(int hop, int microbatch, double transfer) const;

 private:
  int ranks_;
  std::vector<double> ends_;  // by microbatch, then hop; negative: not known
};

/// When each action of each rank starts, if every rank runs its list in order as soon as it can.
using StartTimes = std::vector<std::vector<double>>;
StartTimes start_times(const Schedule& schedule, const VCosts& costs);

/// What a schedule is judged by.
struct VScore {
  double makespan = 0;           // the longest span of a rank, from its first start to its last end
  double end = 0;                // the last end of all
  std::vector<int> units;        // peak units of each rank
  std::vector<int> activations;  // peak of each rank where a weight gradient frees all at once
};
VScore score_of(const Schedule& schedule, const VCosts& costs);

/// Replaces `best` by a schedule that is shorter, ends no later and keeps no more on any rank.
void keep_better(Schedule& best, Schedule candidate, const VCosts& costs);

/// Throws InputError naming the schedule when sizes or costs are out of range.
void check_v_shape(const char* schedule, int ranks, int microbatches, const VCosts& costs);

}  // namespace pipewright::plan
