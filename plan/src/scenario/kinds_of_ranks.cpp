#include "pipewright/plan/scenario/kinds_of_ranks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "pipewright/plan/scenario/scenario_cut.hpp"

namespace pipewright::plan {

std::vector<std::string> kinds_of_ranks(const Scenario& scenario) {
  const StagePlaces places = stage_places(scenario.pipeline);
  const int of_rank = places.copies * places.shards;
  std::vector<std::string> kinds;
  for (int rank = 0; rank < scenario.pipeline.ranks; ++rank) {
    std::vector<std::string> names;
    for (int at = rank * of_rank; at < (rank + 1) * of_rank; ++at) {
      const NodeKind* const kind =
          kind_of(scenario.cluster, places.devices[static_cast<std::size_t>(at)]);
      const Device& device = kind == nullptr ? scenario.cluster.device : kind->device;
      if (std::ranges::find(names, device.name) == names.end())
        names.push_back(device.name);
    }
    kinds.push_back(fmt::format("{}", fmt::join(names, "+")));
  }
  return kinds;
}

std::string kinds_words(const Scenario& scenario) {
  if (!scenario.cluster.mixture)
    return "";
  const std::vector<std::string> kinds = kinds_of_ranks(scenario);
  std::string words;
  for (std::size_t rank = 0; rank < kinds.size();) {
    const std::size_t first = rank;
    while (rank < kinds.size() && kinds[rank] == kinds[first])
      ++rank;
    words += fmt::format("{}{} {}", words.empty() ? "" : ", ", kinds[first], first);
    if (rank - first > 1)
      words += fmt::format("-{}", rank - 1);
  }
  return words;
}

}  // namespace pipewright::plan
