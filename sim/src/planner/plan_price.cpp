#include "pipewright/sim/planner/plan_price.hpp"

#include <numeric>

#include "pipewright/sim/causes/idle.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "pipewright/sim/memory/memory.hpp"

namespace pipewright::sim {

PlanFacts facts_of(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                   StructureCache* structures, double most_s) {
  const ScenarioPlan plan = lay_out(scenario, costs, structures);
  const Structure& structure = *plan.structure;
  require_usable(plan.costs, structure.program());
  Simulator simulator(structure);
  const Times& times = simulator.run_shared(plan.costs);
  if (times.iteration > most_s)
    return {.iteration_s = times.iteration};
  const Throughput throughput = throughput_of(scenario, plan, times.iteration);
  PlanFacts facts{.iteration_s = times.iteration,
                  .bubble = mean_bubble(IdleCauses(structure).of(times), times.iteration),
                  .units_per_s = throughput.units_per_s,
                  .mfu = throughput.mfu,
                  .peaks = {}};
  MemoryModel memory(structure, holding_of(scenario, structure.program()));
  for (const MemoryPeak& peak : memory.curves(plan.costs, times).peaks)
    facts.peaks.push_back(peak.held);
  return facts;
}

}  // namespace pipewright::sim
