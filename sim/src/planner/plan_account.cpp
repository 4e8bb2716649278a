#include "pipewright/sim/planner/plan_account.hpp"

#include <string>

#include "pipewright/plan/runs/pipeline_shape.hpp"
#include "pipewright/plan/runs/transformer_memory.hpp"
#include "pipewright/sim/calibration/run_costs.hpp"

namespace pipewright::sim {

PlanAccount account_of(const plan::Cluster& cluster, const FoundPlan& plan) {
  const plan::TrainingRun& run = plan.run;
  const plan::Machine machine = cluster.machine.value_or(plan::Machine{});
  const plan::LayerClass* const known = class_in(machine.layers, run);
  const plan::LayerFactors factors = known == nullptr ? plan::LayerFactors{} : factors_of(*known);
  const auto work = plan::transformer_work(cluster, run, run.recompute);
  const auto shape = plan::pipeline_shape(std::string(run.schedule_name()), run.pipeline,
                                          run.microbatches(), run.chunks);
  StepCosts costs;
  set_run_costs(costs, cluster, run, work, machine.constants, factors);
  const auto memory = plan::transformer_memory(run, run.recompute, shape);

  PlanAccount account{.times = plan::transformer_times(work, machine.constants, factors),
                      .ranks = {}};
  for (std::size_t rank = 0; rank < memory.size(); ++rank) {
    RankAccount& own = account.ranks.emplace_back();
    own.stages = shape.stages_of_rank[rank];
    for (const int stage : own.stages) {
      const plan::StageCost& cost = costs.stages[static_cast<std::size_t>(stage)];
      own.layers += run.layers_of(stage);
      own.busy_s +=
          (cost.forward + cost.input_gradient + cost.weight_gradient).value * run.microbatches() +
          cost.optimizer_step.value;
    }
    own.standing = memory[rank].standing;
    own.kept = memory[rank].kept;
    own.at_work = plan::peak_of({memory[rank]}, machine.constants) - own.standing - own.kept;
  }
  return account;
}

}  // namespace pipewright::sim
