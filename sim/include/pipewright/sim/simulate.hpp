#pragma once

// The native engine: times any valid Program by the rules of docs/time-and-memory.md. Compute runs
// in listed order on one lane a rank; transfers run through in-order communicators over directed
// links. All orders are fixed by the Program, so the answer is the longest path through a graph:
// exact, and independent of the order in which the engine visits it.

#include <string>
#include <variant>
#include <vector>

#include "pipewright/plan/cluster.hpp"
#include "pipewright/plan/program.hpp"
#include "pipewright/plan/stage_costs.hpp"
#include "pipewright/plan/timeline.hpp"

namespace pipewright::sim {

/// The iteration ran to its end.
struct Completed {
  plan::Timeline timeline;
};

/// Some ranks wait for each other for ever.
struct Deadlock {
  std::vector<std::string> cycle;  // "rank 0, 0SEND_F1", each waiting for the next, the last for
                                   // the first
};

using Outcome = std::variant<Completed, Deadlock>;

/// Predicts one iteration. `costs` holds one entry a stage; the Program must be valid. Throws
/// InputError when the costs are for another number of stages.
Outcome simulate(const plan::Program& program, const std::vector<plan::StageCost>& costs,
                 const plan::Cluster& cluster);

/// "rank 0, 0SEND_F1, which waits for rank 1, 1SEND_B0, which waits for the first".
std::string to_string(const Deadlock& deadlock);

}  // namespace pipewright::sim
