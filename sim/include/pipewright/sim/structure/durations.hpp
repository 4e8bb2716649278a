#pragma once

// The duration of every event of a Structure under given costs.

#include <vector>

#include "pipewright/sim/structure/step_costs.hpp"
#include "pipewright/sim/structure/structure.hpp"

namespace pipewright::sim {

/// The duration of an event in seconds. Compute takes `held`, and its rank can compute again
/// `latency` later, because its transfers occupy it. A transfer occupies its queue and link for
/// `held` and has arrived `latency` later; its receive takes no time of its own.
struct EventCost {
  double held = 0;
  double latency = 0;
};

/// Selects the times of an instruction: those of the slowest device that its rank stands for, with
/// the slowest of their links, or those of its own device.
enum class DeviceTimes { Slowest, Own };

/// Concurrent rings of a collective. In each, n devices send pieces of `size` / n bytes to their
/// next device, in `rounds` (n - 1) steps.
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

/// Returns true if transfers keep ranks from computing.
bool with_overheads(const Structure& structure, const StepCosts& costs);

/// Returns true if each data-parallel replica has its own factors.
bool has_factors_by_copy(const Structure& structure, const StepCosts& costs);

/// Returns the tensor-parallel communication of an action that overlaps with the compute of the
/// action that it is fused with, for a microbatch of length 1: the action takes that much less.
plan::Seconds hidden_in_pair(const Structure& structure, const StepCosts& costs, int event);

/// Returns a rank's speed relative to the measured device: that of its slowest device.
double slowest_speed(const StepCosts& costs, int rank);

/// Returns true if events of one class take different times.
bool varies_by_event(const StepCosts& costs);
/// Returns the duration of a member's event that takes `held` for a microbatch of length 1, scaled
/// by its microbatch's length, its sampled jitter and its factor.
double varied(const Structure& structure, const StepCosts& costs, double held, int event,
              int member);
/// Returns the duration of an event on one member's device and links, for a microbatch of length 1.
/// For an all-reduce over replicas it is that of the member's ring.
EventCost cost_of_member(const Structure& structure, const StepCosts& costs, int event, int member);

class Durations {
 public:
  /// Sets new costs. Allocates nothing if it was filled for an equal Structure before, unless a
  /// machine's constants price collectives.
  void fill(const Structure& structure, const StepCosts& costs) {
    fill(structure, costs, costs.stages);
  }
  /// Sets costs with other stage costs, such as `costs.contended`.
  void fill(const Structure& structure, const StepCosts& costs,
            const std::vector<plan::StageCost>& stages);
  /// Sets costs with the slowest of `count` members of each rank starting at `first` and, if
  /// replicas have their own factors, with the factors of member `first`. Sampled jitter is that of
  /// member 0.
  void fill(const Structure& structure, const StepCosts& costs,
            const std::vector<plan::StageCost>& stages, int first, int count);

  /// Returns true if costs differ between the events of a class.
  bool by_event() const { return by_event_; }
  /// Returns the costs by class, or by event.
  const std::vector<EventCost>& table() const { return by_event_ ? by_event_costs_ : by_class_; }
  const EventCost& of(const Structure& structure, int event) const {
    return table()[static_cast<std::size_t>(by_event_ ? event : structure.class_of(event))];
  }

 private:
  /// The members whose slowest is priced, and the one whose jitter and factors count.
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
