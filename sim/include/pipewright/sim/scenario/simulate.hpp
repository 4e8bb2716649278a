#pragma once

// One question, one answer: the native engine and the memory model in one call. To time a Program
// again and again, keep a Structure and a Simulator.

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

/// The iteration ran to its end.
struct Completed {
  plan::Timeline timeline;
};

/// Some ranks wait for each other for ever: the shortest cycle, in words (plan::find_deadlock).
struct Deadlock {
  std::string cycle;
};

using Outcome = std::variant<Completed, Deadlock>;

/// Predicts one iteration; transfers that overlap on a shared link share it. The Program must be
/// valid. Throws InputError as `require_usable` does.
Outcome simulate(const plan::Program& program, const StepCosts& costs, Holding holding = {});
/// The same for `costs` of one entry per stage and nothing else out of the ordinary.
Outcome simulate(const plan::Program& program, const std::vector<plan::StageCost>& costs,
                 const plan::Cluster& cluster);

}  // namespace pipewright::sim
