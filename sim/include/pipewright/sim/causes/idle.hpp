#pragma once

// Where idle time comes from. Every stretch in which a rank computes nothing has one cause: what
// holds back the action that comes next.

#include <array>
#include <cstdint>
#include <vector>

#include "pipewright/plan/timeline/timeline.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

struct IdleTime {
  std::vector<plan::IdleSpan> spans;                                   // by rank and time
  std::vector<std::array<double, plan::idle_cause_count>> by_cause{};  // of each rank, in seconds

  /// All idle time of a rank: its causes, added up in their order.
  double of_rank(int rank) const;
};
/// How much of an iteration a rank is idle, on average: what is called bubble of all ranks.
double mean_bubble(const IdleTime& idle, double iteration_s);

/// Finds the causes again and again for one Structure, without allocating anew.
///
/// The next action waits for data. As long as the rank that makes them still computes, the cause is
/// warm-up up to the first backward of the idle rank (of an inference, up to its first forward),
/// cool-down after its last forward, else imbalance. From then until the transfer starts, other
/// transfers of its queue are before it: queue. While it moves: transfer, or exposed where it holds
/// compute. A collective that the optimizer step waits for is exposed while it runs. Behind the
/// last action of a rank its idle time is cool-down. What is left is the time that an action which
/// nothing holds back takes to begin: launch. Predicted, there is none of it.
class IdleCauses {
 public:
  /// `structure` must outlive it.
  explicit IdleCauses(const Structure& structure);
  /// Valid until the next call. Times may come from any engine.
  const IdleTime& of(const Times& times);

 private:
  /// What an event that holds compute can wait for.
  enum class Wait : std::uint8_t { Nothing, Data, Receiver, Reductions };
  /// Held together, because looking each up in the Structure takes longer than the search itself.
  struct ComputeEntry {
    int event = 0;
    int send = -1;   // of the data that it waits for; -1: they are made here
    int maker = -1;  // the compute before the send, or before the receive that it is for
    Wait wait = Wait::Nothing;
    bool computes = true;  // false: a transfer that blocks
  };
  struct Rank {
    std::vector<ComputeEntry> compute;  // what holds compute, in order
    int first_backward = 0;             // into `compute`
    int last_forward = 0;
  };

  ComputeEntry entry(int event) const;
  void visit_rank(std::size_t rank, const Times& times);
  void attribute_gap(const ComputeEntry& entry, plan::IdleCause phase, double until,
                     const Times& times);
  void attribute_data(const ComputeEntry& entry, plan::IdleCause phase, const Times& times);
  void attribute_reductions(int step, plan::IdleCause phase, const Times& times);
  /// The time from where the last stretch ended up to `until` has this cause.
  void enter(plan::IdleCause cause, double until);

  const Structure& structure_;
  std::vector<Rank> ranks_;
  IdleTime idle_;
  int rank_ = 0;        // that is being looked at
  double from_ = 0;     // idle time before is explained
  double gap_end_ = 0;  // … and has to be up to here
};

}  // namespace pipewright::sim
