#include "pipewright/search/planner/plan_account.hpp"

#include "pipewright/models/transformer/transformer_costs.hpp"
#include "pipewright/search/planner/plan_files.hpp"
#include "pipewright/sim/causes/idle.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "pipewright/sim/scenario/scenario_plan.hpp"

namespace pipewright::search {

PlanAccount account_of(const plan::Cluster& cluster, const plan::TransformerTraining& training,
                       const plan::Cut& cut) {
  plan::Scenario scenario = scenario_of(cluster, training, cut);
  scenario.cluster = with_unlimited_memory(scenario.cluster);
  const sim::ScenarioPlan plan =
      sim::lay_out(scenario, models::transformer_costs(scenario.cluster, training, cut));
  sim::Simulator simulator(*plan.structure);
  const sim::Times& times = simulator.run_shared(plan.costs);
  sim::IdleCauses causes(*plan.structure);
  const sim::IdleTime& idle = causes.of(times);

  PlanAccount account{.times = models::times_on(cluster, training, cut), .ranks = {}};
  for (int rank = 0; rank < cut.pipeline; ++rank) {
    RankAccount& own = account.ranks.emplace_back();
    own.stages = plan.program().placement.stages_on(rank);
    for (const int stage : own.stages)
      own.layers += cut.layers_of(stage, training.model.layers);
    own.busy_s = times.iteration - idle.of_rank(rank);
  }
  return account;
}

}  // namespace pipewright::search
