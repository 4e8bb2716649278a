#include "pipewright/search/planner/plan_price.hpp"

#include <numeric>

#include "pipewright/sim/causes/idle.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "pipewright/sim/memory/memory.hpp"

namespace pipewright::search {

PlanFacts facts_of(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                   sim::StructureCache* structures, double most_s) {
  const sim::ScenarioPlan plan = lay_out(scenario, costs, structures);
  const sim::Structure& structure = *plan.structure;
  require_usable(plan.costs, structure.program());
  sim::Simulator simulator(structure);
  const sim::Times& times = simulator.run_shared(plan.costs);
  if (times.iteration > most_s)
    return {.iteration_s = times.iteration};
  const sim::Throughput throughput = throughput_of(scenario, plan, times.iteration);
  PlanFacts facts{.iteration_s = times.iteration,
                  .bubble = mean_bubble(sim::IdleCauses(structure).of(times), times.iteration),
                  .units_per_s = throughput.units_per_s,
                  .mfu = throughput.mfu,
                  .peaks = {}};
  sim::MemoryModel memory(structure, sim::holding_of(scenario, structure.program()));
  for (const sim::MemoryPeak& peak : memory.curves(plan.costs, times).peaks)
    facts.peaks.push_back(peak.held);
  return facts;
}

}  // namespace pipewright::search
