#pragma once

// What every event of a Structure takes under given costs.

#include <vector>

#include "pipewright/sim/structure/step_costs.hpp"
#include "pipewright/sim/structure/structure.hpp"

namespace pipewright::sim {

/// In seconds. Compute takes `held`, and `latency` later its rank can compute again: its transfers
/// keep it. A transfer holds its queue and link for `held` and has arrived `latency` later; its
/// receive takes nothing by itself.
struct EventCost {
  double held = 0;
  double latency = 0;
};

/// Whose times the instructions of a device have: those of the slowest device that its rank stands
/// for, with the slowest of their links, or its own.
enum class DeviceTimes { Slowest, Own };

/// Rings of a collective that turn at once: the devices of each pass pieces of `size` over their
/// number on, `rounds` times in a circle less one step.
struct RingPhase {
  std::vector<std::vector<int>> rings;  // devices, in their order on the cluster
  plan::Bytes size{};
  int rounds = 1;
  double seconds = 0;  // on links without other traffic, without jitter
};

/// Number of groups of members that perform a collective of this kind separately: a member belongs
/// to the group of its number modulo the count. Without a collective every member is on its own.
int collective_groups(const StepCosts& costs, plan::InstructionKind kind);
/// Returns the phases of the collective with this leader, in the group of `member`, one after the
/// other. Empty where the constants of a machine price it.
std::vector<RingPhase> ring_phases(const Structure& structure, const StepCosts& costs, int leader,
                                   int member);

/// Whether transfers keep ranks from computing.
bool with_overheads(const Structure& structure, const StepCosts& costs);

/// Whether each copy of the ranks has factors of its own.
bool has_factors_by_copy(const Structure& structure, const StepCosts& costs);

/// What shards pass on in an action beside the compute of the one that it is fused with, for a
/// microbatch of length 1: the action takes so much less.
plan::Seconds hidden_in_pair(const Structure& structure, const StepCosts& costs, int event);

/// How fast a rank computes beside the device that was measured: as the slowest of its devices.
double slowest_speed(const StepCosts& costs, int rank);

/// Whether events of a class take different times.
bool varies_by_event(const StepCosts& costs);
/// What an event of a member takes that takes `held` for a microbatch of length 1: by its
/// microbatch, its draw and its factor.
double varied(const Structure& structure, const StepCosts& costs, double held, int event,
              int member);
/// What an event takes by the device of one member and by its links, for a microbatch of length 1:
/// of a sum over copies, by the ring that the member is in.
EventCost cost_of_member(const Structure& structure, const StepCosts& costs, int event, int member);

class Durations {
 public:
  /// Takes over new costs; allocates nothing when it was filled for an equal Structure before,
  /// but where a machine prices sums.
  void fill(const Structure& structure, const StepCosts& costs) {
    fill(structure, costs, costs.stages);
  }
  /// The same with other costs of the stages, such as `costs.contended`.
  void fill(const Structure& structure, const StepCosts& costs,
            const std::vector<plan::StageCost>& stages);
  /// The same with the slowest of `count` members of each rank from `first` on and, where copies
  /// have factors of their own, with those of the first. Draws are those of member 0.
  void fill(const Structure& structure, const StepCosts& costs,
            const std::vector<plan::StageCost>& stages, int first, int count);

  /// Whether costs differ between the events of a class.
  bool by_event() const { return by_event_; }
  /// By class, or by event.
  const std::vector<EventCost>& table() const { return by_event_ ? by_event_costs_ : by_class_; }
  const EventCost& of(const Structure& structure, int event) const {
    return table()[static_cast<std::size_t>(by_event_ ? event : structure.class_of(event))];
  }

 private:
  /// The members whose slowest is priced, and the one whose draws and factors count.
  struct Whose {
    int first = 0, end = 1;
    int varied = 0;
  };
  void fill(const Structure& structure, const StepCosts& costs,
            const std::vector<plan::StageCost>& stages, const Whose& whose);
  void add_overheads(const Structure& structure, const StepCosts& costs,
                     const std::vector<plan::StageCost>& stages, const Whose& whose);

  bool by_event_ = false;
  std::vector<EventCost> by_class_;
  std::vector<EventCost> by_event_costs_;
};

}  // namespace pipewright::sim
