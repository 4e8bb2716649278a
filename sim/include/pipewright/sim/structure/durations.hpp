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
  /// The same of one copy of the ranks: by its own devices and, where copies have such, its own
  /// factors. Draws are those of the first.
  void fill_copy(const Structure& structure, const StepCosts& costs,
                 const std::vector<plan::StageCost>& stages, int copy);

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
