#include "pipewright/sim/simulate.hpp"

#include "memory.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/sim/simulator.hpp"

namespace pipewright::sim {

Outcome simulate(const plan::Program& program, const StepCosts& costs) {
  require_usable(costs, program);
  try {
    const Structure structure(program);
    Simulator simulator(structure);
    plan::Timeline timeline = timeline_of(structure, simulator.run(costs));
    timeline.memory = memory_curve(program, costs.stages, timeline.spans);
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
