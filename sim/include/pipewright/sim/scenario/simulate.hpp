#pragma once

// The native engine and the memory model in one call. To time a Program repeatedly, keep a
// Structure and a Simulator.

#include <string>
#include <variant>
#include <vector>

#include "pipewright/plan/cluster/cluster.hpp"
#include "pipewright/plan/costs/stage_costs.hpp"
#include "pipewright/plan/program/program.hpp"
#include "pipewright/plan/timeline/timeline.hpp"
#include "pipewright/sim/memory/memory.hpp"
#include "pipewright/sim/structure/step_costs.hpp"

namespace pipewright::sim {

/// The iteration completed.
struct Completed {
  plan::Timeline timeline;
};

/// Some ranks wait for each other forever: the shortest cycle, in words (plan::find_deadlock).
struct Deadlock {
  std::string cycle;
};

using Outcome = std::variant<Completed, Deadlock>;

/// Predicts one iteration; transfers that overlap on a shared link share it. The Program must be
/// valid. Throws InputError as `require_usable` does.
Outcome simulate(const plan::Program& program, const StepCosts& costs, Holding holding = {});
/// Predicts one iteration for `costs` with one entry per stage and defaults for everything else.
Outcome simulate(const plan::Program& program, const std::vector<plan::StageCost>& costs,
                 const plan::Cluster& cluster);

}  // namespace pipewright::sim
