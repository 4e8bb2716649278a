#include <algorithm>

#include "pipewright/sim/planner/plan_search.hpp"

namespace pipewright::sim {

using plan::TrainingRun;

double least_iteration(const StepCosts& costs, int ranks, int microbatches) {
  const auto stage = [&](std::size_t at) -> const plan::StageCost& { return costs.stages[at]; };
  const auto passes = [&](std::size_t at) {
    return (stage(at).input_gradient + stage(at).weight_gradient).value;
  };
  /// Of a transfer between the ranks of a stage and the next.
  const auto hop = [&](int rank, plan::Bytes size) {
    const plan::Link& link = link_between(costs.cluster, rank, rank + 1);
    return link.latency.value + plan::occupancy(link, size).value;
  };
  double least = 0, arrival = 0;
  // By rank: from the end of the rank's last backward, what those before it have still to do.
  double drain = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    double busy = 0, end = 0;
    for (auto at = static_cast<std::size_t>(rank); at < costs.stages.size();
         at += static_cast<std::size_t>(ranks)) {
      busy += stage(at).forward.value + passes(at);
      end += stage(at).optimizer_step.value;
    }
    drain = std::max(end, drain);
    least = std::max(least, arrival + microbatches * busy + drain);
    const auto at = static_cast<std::size_t>(rank);
    if (rank + 1 < ranks) {
      arrival += stage(at).forward.value + hop(rank, stage(at).output);
      drain += passes(at) + hop(rank, stage(at + 1).input_gradient_bytes);
    }
  }
  return least;
}

double model_flops(const TrainingRun& run) {
  const double tokens = 1.0 * run.global_batch * run.sequence;
  // Of the routed experts a token meets only some.
  const double met = run.experts > 0 ? 1.0 * run.experts_per_token / run.experts : 1;
  const double layer = run.layer_parameters() - (1 - met) * run.expert_parameters();
  const double scores = 12.0 * run.layers * run.heads * run.head_channels * run.sequence;
  return tokens * (6 * (run.layers * layer + run.head_parameters()) + scores);
}

}  // namespace pipewright::sim
