#include "pipewright/sim/planner/plan_account.hpp"

#include "pipewright/plan/transformer/pipeline_shape.hpp"
#include "pipewright/plan/transformer/transformer_memory.hpp"
#include "pipewright/sim/calibration/run_costs.hpp"

namespace pipewright::sim {

PlanAccount account_of(const plan::Cluster& cluster, const plan::TransformerTraining& training,
                       const plan::Cut& cut) {
  const StepCosts costs = step_costs(cluster, training, cut);
  const auto shape = plan::pipeline_shape(cut, training.batch);
  const auto memory = plan::transformer_memory(training, cut, shape);
  const plan::MachineConstants constants = machine_of(cluster).constants;

  PlanAccount account{.times = times_on(cluster, training, cut), .ranks = {}};
  for (std::size_t rank = 0; rank < memory.size(); ++rank) {
    RankAccount& own = account.ranks.emplace_back();
    own.stages = shape.stages_of_rank[rank];
    for (const int stage : own.stages)
      own.layers += cut.layers_of(stage, training.model.layers);
    own.busy_s = busy_of(costs, own.stages, cut.microbatches(training.batch));
    own.standing = memory[rank].standing;
    own.kept = memory[rank].kept;
    own.at_work = plan::peak_of({memory[rank]}, constants) - own.standing - own.kept;
  }
  return account;
}

}  // namespace pipewright::sim
