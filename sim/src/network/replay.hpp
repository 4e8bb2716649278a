#pragma once

// Executes the rules of docs/time-and-memory.md on a Network. Compute needs no clock unless ranks
// slow each other down: its end is known as soon as its start is. So only transfers take place in
// the network's time, and each finished transfer settles all that follows from it up to the next
// transfers.

#include <vector>

#include "network/network.hpp"
#include "pipewright/sim/structure/durations.hpp"
#include "pipewright/sim/structure/times.hpp"
#include "structure/collective_rings.hpp"

namespace pipewright::sim {

/// The source of a transfer's time: the Cluster's links, which then give its time without other
/// traffic, or the network's own links, which are given its bytes.
enum class LinkTimes { OfCluster, OfNetwork };

/// The replicas and tensor-parallel ranks of a pipeline, joined by their reductions. No event takes
/// less time than the native engine's Durations say; flows that meet on a link take longer.
class Replay {
 public:
  /// `structure` and `costs` must outlive it.
  Replay(const Structure& structure, const StepCosts& costs, DeviceTimes device_times,
         LinkTimes link_times = LinkTimes::OfCluster);

  Traffic traffic() const;
  /// Returns the events of pipeline 0 and the last end of all pipelines. Contended costs need a
  /// network whose clock knows which devices compute.
  Times run(Network& network);

 private:
  /// The data sent from one device to another at once.
  struct Flow {
    int from = 0, to = 0;
    double bytes = 0;    // on the links, at their rate
    double held = 0;     // seconds without other traffic
    double latency = 0;  // seconds, after that
    double steps = 1;    // each of them pays the network's own latency
  };
  /// Rings of flows, phase by phase.
  struct Collective {
    std::vector<int> leaders;  // one per member, which waits for all of its members
    const std::vector<RingPhase>* phases = {};  // of its devices
    const std::vector<RingPhase>* priced = {};  // of the devices whose times it has
    double factor = 1;                          // of its time
    double held = 0;                            // seconds without other traffic
    std::size_t phase = 0;                      // the current one
    int missing = 0;                            // leaders that are not ready yet
    int flowing = 0;                            // flows of the phase that have not ended
    double start = 0;
    double end = 0;  // of the phase
  };

  // The id of a member's event is member · structure.size() + event.
  int event_of(int id) const { return id % structure_.size(); }
  int member_of(int id) const { return id / structure_.size(); }
  int device_of(int id) const;
  const EventCost& cost_of(const std::vector<Durations>& durations, int id) const;
  double factor_of(int id) const;
  EventTimes& times_of(int id) { return times_[static_cast<std::size_t>(id)]; }
  int last_id() const { return costs_.members() * structure_.size(); }

  void fill(std::vector<Durations>& durations, const std::vector<plan::StageCost>& stages) const;
  void find_collectives();
  Flow flow_of(int send) const;
  template <class Visit>
  void for_each_flow(const Collective& collective, std::size_t phase, const Visit& visit) const;
  void settle_all();
  void begin(int id);
  void begin_in_step(int id);
  void begin_compute(int id, const Compute& work);
  void begin_send(int id);
  static bool moves(const Flow& flow);
  template <class Done>
  void begin_flow(const Flow& flow, double start, const Done& done);
  void join(Collective& collective, int id);
  void begin_phase(Collective& collective);
  void finish(int id, double released, double end);

  const Structure& structure_;
  const StepCosts& costs_;
  const LinkTimes link_times_;
  const bool varies_;
  const int alike_;                               // consecutive members that have the same times
  std::vector<Durations> durations_, contended_;  // by `alike_` members
  CollectiveRings rings_;
  std::vector<Collective> collectives_;
  std::vector<int> collective_of_;  // by id; -1: none
  Network* network_ = nullptr;      // while it runs
  std::vector<EventTimes> times_;
  std::vector<int> pending_;  // number of events that are waited for and have no times yet
  std::vector<int> late_;     // by id of a replica's first tensor-parallel rank: ranks that cannot
                              // compute it yet
  std::vector<int> ready_;    // start is known
  int unsettled_ = 0;
};

}  // namespace pipewright::sim
