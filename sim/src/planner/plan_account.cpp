#include "pipewright/sim/planner/plan_account.hpp"

#include <string>

#include "pipewright/plan/runs/pipeline_shape.hpp"
#include "pipewright/plan/runs/transformer_memory.hpp"
#include "pipewright/sim/calibration/run_costs.hpp"

namespace pipewright::sim {

PlanAccount account_of(const plan::Cluster& cluster, const FoundPlan& plan) {
  const plan::TrainingRun& run = plan.run;
  const PricedRun costs = priced(cluster, run);
  const auto shape = plan::pipeline_shape(std::string(run.schedule_name()), run.pipeline,
                                          run.microbatches(), run.chunks);
  const auto memory = plan::transformer_memory(run, run.recompute, shape);
  const plan::MachineConstants constants = cluster.machine.value_or(plan::Machine{}).constants;

  PlanAccount account{.times = costs.times, .ranks = {}};
  for (std::size_t rank = 0; rank < memory.size(); ++rank) {
    RankAccount& own = account.ranks.emplace_back();
    own.stages = shape.stages_of_rank[rank];
    for (const int stage : own.stages)
      own.layers += run.layers_of(stage);
    own.busy_s = busy_of(costs.steps, own.stages, run.microbatches());
    own.standing = memory[rank].standing;
    own.kept = memory[rank].kept;
    own.at_work = plan::peak_of({memory[rank]}, constants) - own.standing - own.kept;
  }
  return account;
}

}  // namespace pipewright::sim
