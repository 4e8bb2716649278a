#pragma once

// The rules of docs/time-and-memory.md, played on a Network. Compute needs no clock, but where
// ranks slow each other down: when it ends is known as soon as its start is. So only transfers take
// place in the network's time, and each one that is over settles all that follows from it up to the
// next transfers.

#include <vector>

#include "network/network.hpp"
#include "pipewright/sim/structure/durations.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

/// The same costs where every link has this bandwidth and no latency.
StepCosts on_links_of(double bandwidth_per_s, StepCosts costs);
/// By copy of the ranks, or of all of them where they are alike.
using CopyWorks = std::vector<Durations>;
/// The seconds that compute takes, and the bytes that a send or a reduction puts on its links: on
/// links of one byte per second a transfer takes as long as it is large.
CopyWorks works_of(const Structure& structure, const StepCosts& costs);
/// The same where all cores compute at once: with `costs.contended`.
CopyWorks contended_works_of(const Structure& structure, const StepCosts& costs);

/// The copies and shards of a pipeline side by side, joined by their reductions.
class Replay {
 public:
  /// `works`: as `works_of` tells them (`held` of each). `contended`: those of
  /// `contended_works_of`, on a network that sees who computes; null: nobody minds. `costs` say who
  /// is where. All must outlive it.
  Replay(const Structure& structure, const CopyWorks& works, const StepCosts& costs,
         const CopyWorks* contended = nullptr);

  Traffic traffic() const;
  /// The events of pipeline 0 and the last end of all pipelines.
  Times run(Network& network);

 private:
  /// A ring of flows, all at once.
  struct Collective {
    std::vector<int> leaders;  // one per member, which waits for all of its members
    std::vector<int> ring;     // one per device, in their order
    int rounds = 1;
    double work = 0;  // bytes on each of its links
    int missing = 0;  // leaders that are not ready yet
    int flowing = 0;  // flows that are not over yet
    double start = 0;
    double end = 0;
  };

  // An event of a member is numbered member · structure.size() + event.
  int event_of(int id) const { return id % structure_.size(); }
  int member_of(int id) const { return id / structure_.size(); }
  int device_of(int id) const;
  int receiving_device(int id) const;
  const EventCost& cost_of(const CopyWorks& works, int id) const;
  double work_of(int id) const { return cost_of(works_, id).held; }
  EventTimes& times_of(int id) { return times_[static_cast<std::size_t>(id)]; }
  int last_id() const { return costs_.members() * structure_.size(); }

  int group_of(plan::InstructionKind kind, int member) const;
  void find_collectives();
  template <class Visit>
  void for_each_flow(const Collective& collective, const Visit& visit) const;
  void settle_all();
  void begin(int id);
  void begin_in_step(int id);
  void begin_compute(int id);
  void begin_send(int id);
  void join(Collective& collective, int id);
  void end_flow(Collective& collective, double end);
  void finish(int id, double released, double end);

  const Structure& structure_;
  const CopyWorks& works_;
  const CopyWorks* contended_;
  const StepCosts& costs_;
  std::vector<Collective> collectives_;
  std::vector<int> collective_of_;  // by id; -1: none
  Network* network_ = nullptr;      // while it runs
  std::vector<EventTimes> times_;
  std::vector<int> pending_;  // events that are waited for and whose times are not known
  std::vector<int> late_;     // by id of a copy's first shard: shards that cannot compute it yet
  std::vector<int> ready_;    // whose start is known
  int unsettled_ = 0;
};

}  // namespace pipewright::sim
