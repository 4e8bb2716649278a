#pragma once

// Finds what each incomplete communication waits for (earlier communications in an NCCL queue or on
// a rank, or ranks that have not issued it), and why it may be stuck itself.

#include <optional>
#include <vector>

#include "hang/communication.hpp"

namespace pipewright::trace {

enum class WaitCause {
  Queue,   // precedes it in the same NCCL queue: certain
  Stream,  // precedes it on a rank, whose later work waits for it
  Host,    // the rank is blocked in it and has not issued the other
  Sends,   // as Host, but the rank has only sends open, which do not block a program on NCCL
};

struct CommunicationWait {
  int to = 0;    // index of a communication
  int rank = 0;  // on which the other precedes it
  WaitCause cause = WaitCause::Queue;
};

/// The reason why a communication is stuck although nothing of its kind precedes it.
enum class StuckCause {
  Disagreement,  // its ranks issued different operations
  Behind,        // a rank has issued it and makes no progress, although others have completed it
  Dead,          // a rank has no record
  Passed,        // a rank has not issued it and is already past it
  Late,          // a rank has not issued it and is in no communication
  OnlySends,     // a rank has not issued it and has only sends open
  Still,         // all have issued it and it does not complete: its data is not computed
};

struct StuckCommunication {
  StuckCause cause = StuckCause::Late;
  int communication = 0;
  int rank = 0;
  bool is_held_up = false;  // another communication precedes it on some rank
};

struct WaitGraph {
  std::vector<std::vector<CommunicationWait>> waits;  // by communication
  std::vector<StuckCommunication> stuck;
};

WaitGraph wait_graph(const std::vector<FlightRecord>& records, const Communications& joined);

struct WaitStep {
  int communication = 0;
  CommunicationWait wait;  // the reason why it waits for the next one
};

/// Returns the shortest cycle of waits with these causes; empty: there is none.
std::vector<WaitStep> shortest_cycle(const WaitGraph& graph, const std::vector<WaitCause>& causes);
/// Returns the longest of the shortest paths from any communication to `end`, in order.
std::vector<WaitStep> way_to(const WaitGraph& graph, int end);

struct Disagreement {
  int rank = 0;                // the minority
  bool is_collective = false;  // in a different collective; otherwise with different sizes or types
  bool is_sizes = false;
};
/// Returns nothing if all members agree. If two parties have the same size, the one whose rank
/// behaved differently before is considered wrong.
std::optional<Disagreement> disagreement(const std::vector<FlightRecord>& records,
                                         const Communications& joined, int communication);

}  // namespace pipewright::trace
