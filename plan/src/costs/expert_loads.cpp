#include "pipewright/plan/costs/expert_loads.hpp"

#include <algorithm>
#include <numeric>

namespace pipewright::plan {
namespace {

/// Returns the load imbalance of one all-to-all, whose ranks contribute the microbatches from
/// `first` on.
double load_of(const std::vector<std::vector<std::int64_t>>& rows, std::size_t first, int ranks) {
  std::vector<double> of_rank(static_cast<std::size_t>(ranks));
  for (std::size_t from = 0; from < of_rank.size(); ++from) {
    const auto& microbatch = rows[(first + from) % rows.size()];
    const std::size_t here = microbatch.size() / of_rank.size();
    for (std::size_t expert = 0; expert < microbatch.size(); ++expert)
      of_rank[expert / here] += static_cast<double>(microbatch[expert]);
  }
  const double all = std::accumulate(of_rank.begin(), of_rank.end(), 0.0);
  return all > 0 ? *std::max_element(of_rank.begin(), of_rank.end()) * ranks / all : 1;
}

}  // namespace

std::vector<ExpertLoad> expert_loads(const std::vector<std::vector<std::int64_t>>& rows) {
  std::vector<ExpertLoad> loads;
  const int experts = rows.empty() ? 0 : static_cast<int>(rows.front().size());
  for (int ranks = 2; ranks <= experts; ++ranks) {
    if (experts % ranks != 0)
      continue;
    const std::size_t together = static_cast<std::size_t>(ranks);
    const std::size_t exchanges = std::max<std::size_t>(1, rows.size() / together);
    double sum = 0;
    for (std::size_t exchange = 0; exchange < exchanges; ++exchange)
      sum += load_of(rows, exchange * together, ranks);
    loads.push_back({ranks, sum / static_cast<double>(exchanges)});
  }
  return loads;
}

double busiest_load(const LayerCost& layer, int ranks) {
  if (ranks == 1 || layer.expert_loads.empty())
    return 1;
  const auto found = std::find_if(layer.expert_loads.begin(), layer.expert_loads.end(),
                                  [&](const ExpertLoad& load) { return load.ranks >= ranks; });
  return found == layer.expert_loads.end() ? layer.expert_loads.back().busiest : found->busiest;
}

void slow_to_busiest(LayerCost& layer, int ranks, double share) {
  const double load = busiest_load(layer, ranks);
  for (LayerTimes* const times : {static_cast<LayerTimes*>(&layer), &layer.contended})
    for (Seconds* const time :
         {&times->forward, &times->input_gradient, &times->weight_gradient, &times->splitting})
      *time = *time * (1 + share * (load - 1));
  layer.expert_all_to_alls.bytes =
      whole_bytes(static_cast<double>(layer.expert_all_to_alls.bytes.value) * load);
}

}  // namespace pipewright::plan
