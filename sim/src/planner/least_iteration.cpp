#include <algorithm>

#include "pipewright/sim/planner/plan_search.hpp"

namespace pipewright::sim {

double least_iteration(const StepCosts& costs, const plan::PipelineShape& shape, int microbatches) {
  const auto passes = [](const plan::StageCost& stage) {
    return (stage.input_gradient + stage.weight_gradient).value;
  };
  /// What a transfer between the ranks of a stage and the next takes.
  const auto hop = [&](int rank, plan::Bytes size) {
    const plan::Link& link = link_between(costs.cluster, rank, rank + 1);
    return link.latency.value + plan::occupancy(link, size).value;
  };
  double least = 0, arrival = 0;
  // By rank: from the end of the rank's last backward, what those before it have still to do. A
  // rank whose last work is a weight gradient keeps nobody waiting.
  double drain = 0;
  for (std::size_t rank = 0; rank < shape.stages_of_rank.size(); ++rank) {
    double busy = 0, end = 0;
    for (const int at : shape.stages_of_rank[rank]) {
      const plan::StageCost& stage = costs.stages[static_cast<std::size_t>(at)];
      busy += stage.forward.value + passes(stage);
      end += stage.optimizer_step.value;
    }
    drain = shape.splits_backward ? end : std::max(end, drain);
    least = std::max(least, arrival + microbatches * busy + drain);
    if (rank + 1 < shape.stages_of_rank.size()) {  // every rank's first stage is the next one
      const plan::StageCost& stage = costs.stages[rank];
      arrival += stage.forward.value + hop(static_cast<int>(rank), stage.output);
      drain +=
          passes(stage) + hop(static_cast<int>(rank), costs.stages[rank + 1].input_gradient_bytes);
    }
  }
  return least;
}

}  // namespace pipewright::sim
