#pragma once

// The causes of idle time. Every interval in which a rank computes nothing has one cause: what
// delays the rank's next action.

#include <array>
#include <cstdint>
#include <vector>

#include "pipewright/plan/timeline/timeline.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

struct IdleTime {
  std::vector<plan::IdleSpan> spans;                                   // by rank and time
  std::vector<std::array<double, plan::idle_cause_count>> by_cause{};  // of each rank, in seconds

  /// Returns all idle time of a rank in seconds: the sum over its causes, in their order.
  double of_rank(int rank) const;
};
/// Returns the mean idle fraction of the ranks in an iteration: the bubble of all ranks.
double mean_bubble(const IdleTime& idle, double iteration_s);

/// Finds the causes of idle time for one Structure, repeatedly and without new allocations.
///
/// The next action waits for data. While the rank that produces them still computes, the cause is
/// warm-up up to the idle rank's first backward (in inference, up to its first forward), cool-down
/// after its last forward, and imbalance otherwise. From then until the transfer starts, the cause
/// is queue: other transfers of its queue come first. While the data move, the cause is transfer,
/// or exposed if the transfer blocks compute. A collective that the optimizer step waits for is
/// exposed while it runs. After a rank's last action its idle time is cool-down. The remaining time
/// is launch: the time that an action takes to begin although nothing delays it. A prediction has
/// no launch time.
class IdleCauses {
 public:
  /// `structure` must outlive it.
  explicit IdleCauses(const Structure& structure);
  /// Returns the idle time under these times. Valid until the next call. Times may come from any
  /// engine.
  const IdleTime& of(const Times& times);

 private:
  /// The kinds of waits of an event that occupies the rank's compute.
  enum class Wait : std::uint8_t { Nothing, Data, Receiver, Reductions };
  /// The dependencies of one event, stored together because looking up each in the Structure takes
  /// longer than the search itself.
  struct ComputeEntry {
    int event = 0;
    int send = -1;   // of the data that it waits for; -1: this rank produces them
    int maker = -1;  // the compute before the send, or before the receive that it is for
    Wait wait = Wait::Nothing;
    bool computes = true;  // false: a blocking transfer
  };
  struct Rank {
    std::vector<ComputeEntry> compute;  // events that occupy compute, in order
    int first_backward = 0;             // into `compute`
    int last_forward = 0;
  };

  ComputeEntry entry(int event) const;
  void visit_rank(std::size_t rank, const Times& times);
  void attribute_gap(const ComputeEntry& entry, plan::IdleCause phase, double until,
                     const Times& times);
  void attribute_data(const ComputeEntry& entry, plan::IdleCause phase, const Times& times);
  void attribute_reductions(int step, plan::IdleCause phase, const Times& times);
  /// Attributes the time from the end of the last interval until `until` to this cause.
  void enter(plan::IdleCause cause, double until);

  const Structure& structure_;
  std::vector<Rank> ranks_;
  IdleTime idle_;
  int rank_ = 0;        // the rank being processed
  double from_ = 0;     // idle time before this has a cause
  double gap_end_ = 0;  // … and needs one up to here
};

}  // namespace pipewright::sim
