#pragma once

// What each incomplete communication waits for: others that stand before it in a queue of NCCL or
// on a rank, or ranks that have not issued it; and the reasons for which it may be stuck by itself.

#include <optional>
#include <vector>

#include "hang/communication.hpp"

namespace pipewright::trace {

enum class WaitCause {
  Queue,   // stands before it in the same queue of NCCL: certain
  Stream,  // stands before it on a rank, whose later work waits for it
  Host,    // the rank stands there and has not issued it
  Sends,   // the same, but the rank has only sends open, which hold up no program on NCCL
};

struct CommunicationWait {
  int to = 0;    // a communication
  int rank = 0;  // on which that stands before it
  WaitCause cause = WaitCause::Queue;
};

/// Why one is stuck though nothing of its kind stands before it.
enum class StuckCause {
  Disagreement,  // its ranks do not issue the same
  Dead,          // a rank has no record
  Passed,        // a rank has not issued it and is behind it by now
  Late,          // a rank has not issued it and is in no communication
  OnlySends,     // a rank has not issued it and has only sends open
  Still,         // all have issued it, and it does not end: what it needs is not computed
};

struct StuckCommunication {
  StuckCause cause = StuckCause::Late;
  int communication = 0;
  int rank = 0;
  bool is_held_up = false;  // something stands before it on some rank
};

struct WaitGraph {
  std::vector<std::vector<CommunicationWait>> waits;  // by communication
  std::vector<StuckCommunication> stuck;
};

WaitGraph wait_graph(const std::vector<FlightRecord>& records, const Communications& joined);

struct WaitStep {
  int communication = 0;
  CommunicationWait wait;  // by which it waits for the next
};

/// The shortest cycle by waits of these causes; empty: there is none.
std::vector<WaitStep> shortest_cycle(const WaitGraph& graph, const std::vector<WaitCause>& causes);
/// The longest of the shortest ways from any communication to `end`, in their order.
std::vector<WaitStep> way_to(const WaitGraph& graph, int end);

struct Disagreement {
  int rank = 0;                // that most are against
  bool is_collective = false;  // in another one; else with other numbers or types
  bool is_sizes = false;
};
/// Nothing where its members are alike. Of two parties of one size, that is taken for wrong whose
/// rank did otherwise before.
std::optional<Disagreement> disagreement(const std::vector<FlightRecord>& records,
                                         const Communications& joined, int communication);

}  // namespace pipewright::trace
