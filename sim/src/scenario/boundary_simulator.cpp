#include "pipewright/sim/scenario/boundary_simulator.hpp"

#include "pipewright/plan/cluster/even_memory.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/program/gradient_groups.hpp"
#include "pipewright/plan/scenario/scenario_cut.hpp"

namespace pipewright::sim {
namespace {

/// Returns the scenario with unlimited memory, unless its schedule adapts to the memory.
plan::Scenario measured_roomy(plan::Scenario scenario) {
  if (!plan::descriptor_of(scenario.pipeline.schedule).takes_memory_units)
    scenario.cluster = plan::with_unlimited_memory(scenario.cluster);
  return scenario;
}

}  // namespace

BoundarySimulator::BoundarySimulator(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                                     StructureCache& structures)
    : scenario_(scenario),
      plan_(lay_out(measured_roomy(scenario), costs, &structures)),
      shard_costs_(shard_costs_of(scenario, costs)),
      step_(plan_.costs),
      caps_(plan::memory_by_rank(plan::cluster_of_ranks(scenario), scenario.pipeline.ranks)),
      largest_(plan::largest_memory(scenario.cluster)),
      simulator_(*plan_.structure),
      memory_(*plan_.structure, holding_of(scenario_, plan_.program())) {
  require_usable(plan_.costs, plan_.program());
  if (const int groups = scenario_.training.gradient_groups; groups > 0)
    plan::require_whole_groups(plan_.program(), scenario_.pipeline.replicas, groups);
}

PartitionNeed BoundarySimulator::need(const std::vector<int>& boundaries, double most_s) {
  set_partition(step_, scenario_, shard_costs_, {boundaries});
  const Times& times = simulator_.run_shared(step_);
  if (times.iteration > most_s)
    return {{times.iteration}, {}};
  std::vector<plan::Bytes> held;
  for (const MemoryPeak& peak : memory_.curves(step_, times).peaks)
    held.push_back(peak.held);
  return {{times.iteration}, plan::normalized_peak(held, caps_, largest_)};
}

}  // namespace pipewright::sim
