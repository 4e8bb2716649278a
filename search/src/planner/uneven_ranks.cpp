#include "pipewright/search/planner/uneven_ranks.hpp"

#include <algorithm>
#include <numeric>

#include "pipewright/plan/cluster/even_memory.hpp"
#include "pipewright/plan/scenario/scenario_cut.hpp"

namespace pipewright::search {
namespace {

template <class Value>
bool are_equal(const std::vector<Value>& values) {
  return std::ranges::all_of(values, [&](const Value& one) { return one == values.front(); });
}

}  // namespace

RankDevices rank_devices(const plan::Cluster& cluster, const plan::Cut& cut) {
  plan::Scenario scenario;
  scenario.cluster = cluster;
  scenario.pipeline.ranks = cut.pipeline;
  scenario.pipeline.replicas = cut.data;
  scenario.pipeline.context = cut.context;
  scenario.pipeline.tensor = cut.tensor;
  const plan::Cluster ranks = plan::cluster_of_ranks(scenario);
  RankDevices devices{.speeds = ranks.rank_speeds,
                      .memory = plan::memory_by_rank(ranks, cut.pipeline)};
  devices.speeds.resize(static_cast<std::size_t>(cut.pipeline), 1);
  return devices;
}

bool have_one_speed(const RankDevices& devices) { return are_equal(devices.speeds); }
bool have_one_memory(const RankDevices& devices) { return are_equal(devices.memory); }

bool has_uneven_ranks(const plan::Cluster& cluster) {
  return cluster.mixture || !cluster.rank_speeds.empty() || !cluster.rank_memory.empty();
}

std::optional<std::vector<int>> dealt_layers(const AssignedLayers& dealt,
                                             const models::PipelineShape& shape,
                                             const std::vector<double>& speeds) {
  const std::size_t ranks = shape.stages_of_rank.size();
  std::vector<int> of_rank;
  std::vector<double> busy(ranks, 0);
  for (const std::vector<int>& stages : shape.stages_of_rank)
    of_rank.push_back(static_cast<int>(stages.size()));
  const int stages = std::accumulate(of_rank.begin(), of_rank.end(), 0);
  for (std::size_t rank = 0; rank < ranks; ++rank)
    busy[rank] = of_rank[rank] + (shape.stages_of_rank[rank].back() == stages - 1 ? dealt.head : 0);
  const auto may_have = [&](std::size_t rank, int layers) {
    return dealt.most_of_rank.empty() || layers <= dealt.most_of_rank[rank];
  };
  for (std::size_t rank = 0; rank < ranks; ++rank)
    if (!may_have(rank, of_rank[rank]))
      return {};
  // Greedy distribution of equal layers, each to the rank where it ends first, is optimal (by an
  // exchange argument). Among equal ranks a later one is chosen, which holds fewer microbatches.
  for (int left = dealt.layers - stages; left > 0; --left) {
    std::size_t first = ranks;
    for (std::size_t rank = ranks; rank-- > 0;)
      if (may_have(rank, of_rank[rank] + 1) &&
          (first == ranks || (busy[rank] + 1) / speeds[rank] < (busy[first] + 1) / speeds[first]))
        first = rank;
    if (first == ranks)
      return {};
    ++of_rank[first];
    ++busy[first];
  }
  std::vector<int> layers(static_cast<std::size_t>(stages));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto own = static_cast<int>(shape.stages_of_rank[rank].size());
    for (int at = 0; at < own; ++at)
      layers[static_cast<std::size_t>(shape.stages_of_rank[rank][static_cast<std::size_t>(at)])] =
          of_rank[rank] / own + (at >= own - of_rank[rank] % own ? 1 : 0);
  }
  return layers;
}

}  // namespace pipewright::search
