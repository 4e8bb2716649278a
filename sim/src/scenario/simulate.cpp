#include "pipewright/sim/scenario/simulate.hpp"

#include "pipewright/plan/error.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "pipewright/sim/memory/memory.hpp"

namespace pipewright::sim {

Outcome simulate(const plan::Program& program, const StepCosts& costs, Holding holding) {
  require_usable(costs, program);
  try {
    const Structure structure(program);
    Simulator simulator(structure);
    const Times& times = simulator.run_shared(costs);
    plan::Timeline timeline = timeline_of(structure, times);
    timeline.memory = samples_of(MemoryModel(structure, holding).curves(costs, times));
    return Completed{std::move(timeline)};
  } catch (const plan::Infeasible& deadlock) {
    return Deadlock{deadlock.what()};
  }
}

Outcome simulate(const plan::Program& program, const std::vector<plan::StageCost>& costs,
                 const plan::Cluster& cluster) {
  StepCosts step;
  step.stages = costs;
  step.cluster = cluster;
  return simulate(program, step);
}

}  // namespace pipewright::sim
