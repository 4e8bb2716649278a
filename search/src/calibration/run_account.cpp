#include "pipewright/search/calibration/run_account.hpp"

#include "pipewright/search/calibration/run_costs.hpp"

namespace pipewright::search {

std::vector<RankTime> rank_stages(const models::MeasuredRun& run) {
  std::vector<RankTime> ranks(static_cast<std::size_t>(run.cut.pipeline));
  for (int stage = 0; stage < run.cut.stages(); ++stage) {
    RankTime& own = ranks[static_cast<std::size_t>(stage % run.cut.pipeline)];
    own.stages.push_back(stage);
    own.layers += run.cut.layers_of(stage, run.training.model.layers);
  }
  return ranks;
}

std::vector<RankTime> rank_times(const plan::Cluster& cluster, const models::MeasuredRun& run) {
  const sim::StepCosts costs = step_costs(cluster, run.training, run.cut);
  std::vector<RankTime> ranks = rank_stages(run);
  for (RankTime& own : ranks)
    for (const int at : own.stages) {
      const plan::StageCost& stage = costs.stages[static_cast<std::size_t>(at)];
      const int microbatches = run.microbatches();
      own.forward_s += stage.forward.value * microbatches;
      own.backward_s += (stage.input_gradient + stage.weight_gradient).value * microbatches;
      own.end_s += stage.optimizer_step.value;
    }
  return ranks;
}

}  // namespace pipewright::search
