#include "pipewright/plan/schedules/placement_of.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {
namespace {

/// Throws if the sizes need more actions than there are, since a mistyped number would otherwise
/// exhaust memory.
void check_size(const Schedule& schedule, std::size_t stages, std::size_t microbatches) {
  std::size_t actions = 0;
  for (const auto& list : schedule.ranks)
    actions += list.size();
  if (stages * microbatches > 100'000 && actions < stages * microbatches)
    throw InputError(
        fmt::format("{} stages and {} microbatches need {} actions at least, but there are {}",
                    stages, microbatches, stages * microbatches, actions));
}

/// Returns the rank of each stage for every microbatch, or -1 if no rank has an action of it.
std::vector<std::vector<int>> ranks_by_microbatch(const Schedule& schedule, std::size_t stages) {
  std::size_t microbatches = static_cast<std::size_t>(std::max(schedule.microbatches, 0));
  for (const auto& actions : schedule.ranks)
    for (const Action& action : actions)
      microbatches = std::max(microbatches, static_cast<std::size_t>(action.microbatch) + 1);
  check_size(schedule, stages, microbatches);
  std::vector ranks(microbatches, std::vector<int>(stages, -1));
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank)
    for (const Action& action : schedule.ranks[rank]) {
      int& owner = ranks[static_cast<std::size_t>(action.microbatch)]
                        [static_cast<std::size_t>(action.stage)];
      if (owner < 0)
        owner = static_cast<int>(rank);
    }
  return ranks;
}

/// Returns true if two routes agree wherever both are known.
bool agree(const std::vector<int>& one, const std::vector<int>& other) {
  for (std::size_t stage = 0; stage < one.size(); ++stage)
    if (one[stage] != other[stage] && one[stage] >= 0 && other[stage] >= 0)
      return false;
  return true;
}

void fill_gaps(std::vector<int>& route, const std::vector<int>& other) {
  for (std::size_t stage = 0; stage < route.size(); ++stage)
    route[stage] = std::max(route[stage], other[stage]);
}

}  // namespace

Placement placement_of(const Schedule& schedule) {
  const auto stages = static_cast<std::size_t>(stage_count(schedule));
  Placement placement;
  for (const auto& ranks : ranks_by_microbatch(schedule, stages)) {
    auto route = std::find_if(placement.routes.begin(), placement.routes.end(),
                              [&](const std::vector<int>& known) { return agree(known, ranks); });
    if (route == placement.routes.end())
      route = placement.routes.insert(route, ranks);
    else
      fill_gaps(*route, ranks);
    placement.route_of_microbatch.push_back(static_cast<int>(route - placement.routes.begin()));
  }
  if (placement.routes.empty())
    placement.routes.emplace_back(stages, -1);
  if (placement.routes.size() == 1)
    placement.route_of_microbatch.clear();
  return placement;
}

}  // namespace pipewright::plan
