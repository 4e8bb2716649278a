#include "on_placement.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/generators.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "schedules/sizes.hpp"

namespace pipewright::plan {

Schedule stage_by_stage(const std::vector<int>& rank_of_stage, int microbatches,
                        bool forward_only) {
  const int ranks = *std::max_element(rank_of_stage.begin(), rank_of_stage.end()) + 1;
  Schedule schedule{.microbatches = microbatches, .ranks = {}};
  for (const auto& stages : stages_of_rank(rank_of_stage, ranks)) {
    auto& actions = schedule.ranks.emplace_back();
    for (const int stage : stages)
      for (int m = 0; m < microbatches; ++m)
        actions.push_back({ActionKind::Forward, stage, m});
    for (auto stage = stages.rbegin(); stage != stages.rend() && !forward_only; ++stage)
      for (int m = 0; m < microbatches; ++m)
        actions.push_back({ActionKind::Backward, *stage, m});
  }
  return schedule;
}

Schedule make_on_placement(const std::string& name, const std::vector<int>& rank_of_stage,
                           int microbatches) {
  if (rank_of_stage.empty() || *std::min_element(rank_of_stage.begin(), rank_of_stage.end()) < 0)
    throw InputError(fmt::format("{}: a placement needs a rank from 0 on for every stage", name));
  const int ranks = *std::max_element(rank_of_stage.begin(), rank_of_stage.end()) + 1;
  const auto stages = static_cast<int>(rank_of_stage.size());
  check_sizes(name.c_str(), ranks, microbatches, (stages + ranks - 1) / ranks);
  for (int rank = 0; rank < ranks; ++rank)
    if (std::find(rank_of_stage.begin(), rank_of_stage.end(), rank) == rank_of_stage.end())
      throw InputError(
          fmt::format("{}: rank {} has no stage, but rank {} has one", name, rank, ranks - 1));
  const ScheduleDescriptor& entry = find_schedule(name);
  if (!entry.takes_placement())
    throw InputError(fmt::format("{} has a fixed placement; these run on any: {}", name,
                                 listed_schedules(&ScheduleDescriptor::takes_placement)));
  return entry.make_on_placement(rank_of_stage, microbatches);
}

}  // namespace pipewright::plan
