#include <algorithm>

#include "pipewright/search/planner/plan_search.hpp"

namespace pipewright::search {
namespace {

double passes(const plan::StageCost& stage) {
  return (stage.input_gradient + stage.weight_gradient).value;
}

/// A stage boundary between ranks: the seconds for which an output and its gradient occupy both.
struct Hop {
  double output = 0, gradient = 0;
};

std::vector<Hop> hops_of(const sim::StepCosts& costs, const models::PipelineShape& shape) {
  std::vector<int> rank_of(costs.stages.size());
  for (std::size_t rank = 0; rank < shape.stages_of_rank.size(); ++rank)
    for (const int stage : shape.stages_of_rank[rank])
      rank_of[static_cast<std::size_t>(stage)] = static_cast<int>(rank);
  std::vector<Hop> hops(costs.stages.size() - 1);
  for (std::size_t at = 0; at < hops.size(); ++at) {
    if (rank_of[at] == rank_of[at + 1])
      continue;
    const plan::Link& link = link_between(costs.cluster, rank_of[at], rank_of[at + 1]);
    const auto seconds = [&](plan::Bytes size) {
      return link.latency.value + plan::occupancy(link, size).value;
    };
    hops[at] = {seconds(costs.stages[at].output),
                seconds(costs.stages[at + 1].input_gradient_bytes)};
  }
  return hops;
}

}  // namespace

double least_iteration(const sim::StepCosts& costs, const models::PipelineShape& shape,
                       int microbatches) {
  const std::vector<Hop> hops = hops_of(costs, shape);
  // A fused pair hides at most its forward, for either of its actions.
  const double forwards = 1 - (shape.fuses ? costs.pair_overlap : 0);
  // `arrival` is the time before the rank receives its first microbatch from the previous rank.
  // `drain` is the remaining work of the previous ranks after the rank's last transfer. If a rank's
  // last action is a weight gradient, no other rank waits for it.
  double least = 0, arrival = 0, drain = 0;
  for (std::size_t rank = 0; rank < shape.stages_of_rank.size(); ++rank) {
    double busy = 0, end = 0, sends = 0, receives = 0;
    for (const int stage : shape.stages_of_rank[rank]) {
      const auto at = static_cast<std::size_t>(stage);
      const Hop before = at > 0 ? hops[at - 1] : Hop{};
      const Hop behind = at < hops.size() ? hops[at] : Hop{};
      busy += costs.stages[at].forward.value * forwards + passes(costs.stages[at]);
      sends += behind.output + before.gradient;
      receives += before.output + behind.gradient;
      end += costs.stages[at].optimizer_step.value;
    }
    if (shape.stages_of_rank[rank].size() == 1)  // with several stages it computes meanwhile
      busy += std::max(sends, receives);         // sending and receiving overlap
    drain = shape.splits_backward ? end : std::max(end, drain);
    least = std::max(least, arrival + microbatches * busy + drain);
    // Every rank's first stage is the next one.
    const Hop before = rank > 0 ? hops[rank - 1] : Hop{};
    arrival += costs.stages[rank].forward.value + before.output;
    drain += passes(costs.stages[rank]) + before.gradient;
  }
  return least;
}

}  // namespace pipewright::search
