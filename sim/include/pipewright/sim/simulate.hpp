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

/// Some ranks wait for each other for ever: the shortest cycle, in words (plan::find_deadlock).
struct Deadlock {
  std::string cycle;
};

using Outcome = std::variant<Completed, Deadlock>;

/// Predicts one iteration. `costs` holds one entry a stage; the Program must be valid. Throws
/// InputError when the costs are for another number of stages.
Outcome simulate(const plan::Program& program, const std::vector<plan::StageCost>& costs,
                 const plan::Cluster& cluster);

}  // namespace pipewright::sim
