#include "pipewright/trace/explain/recognized_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/schedules/backward_passes.hpp"

namespace pipewright::trace {
namespace {

plan::Schedule plain(plan::Schedule schedule) {
  for (auto& rank : schedule.ranks)
    for (plan::Action& action : rank)
      action.fused_with_next = false;
  return plan::merge_backwards(std::move(schedule));
}

double alike(const plan::Schedule& a, const plan::Schedule& b) {
  std::size_t same = 0, all = 0;
  for (std::size_t rank = 0; rank < a.ranks.size(); ++rank) {
    const auto& left = a.ranks[rank];
    const auto& right = b.ranks[rank];
    all += std::max(left.size(), right.size());
    for (std::size_t at = 0; at < std::min(left.size(), right.size()); ++at)
      same += left[at] == right[at] ? 1 : 0;
  }
  return all == 0 ? 0 : static_cast<double>(same) / static_cast<double>(all);
}

std::string first_difference(const plan::Schedule& traced, const plan::Schedule& nearest) {
  const auto text = [](const std::vector<plan::Action>& actions, std::size_t at) {
    return at < actions.size() ? to_string(actions[at]) : "nothing";
  };
  for (std::size_t rank = 0; rank < traced.ranks.size(); ++rank) {
    const auto& left = traced.ranks[rank];
    const auto& right = nearest.ranks[rank];
    for (std::size_t at = 0; at < std::max(left.size(), right.size()); ++at)
      if (const auto ran = text(left, at), wanted = text(right, at); ran != wanted)
        return fmt::format("rank {}, action {}: {} ran, but the schedule has {}", rank, at + 1, ran,
                           wanted);
  }
  return {};
}

}  // namespace

RecognizedSchedule recognized_schedule(const plan::Schedule& schedule) {
  const auto ranks = static_cast<int>(schedule.ranks.size());
  const int stages = plan::stage_count(schedule);
  const plan::Schedule traced = plain(schedule);
  RecognizedSchedule found{.chunks = std::max(1, stages / std::max(1, ranks))};
  for (const plan::ScheduleDescriptor& entry : plan::schedules()) {
    if (entry.is_data_parallel || entry.is_forward_only != plan::is_forward_only(schedule) ||
        (entry.orders_by_times && stages * schedule.microbatches > most_to_search))
      continue;
    plan::ScheduleRequest request;
    request.name = entry.name;
    request.ranks = ranks;
    request.microbatches = schedule.microbatches;
    request.chunks = found.chunks;
    try {
      for (const plan::Schedule& made :
           {plain(plan::make_schedule(request)), plain(plan::make_training_schedule(request))}) {
        if (made.ranks.size() != traced.ranks.size())
          continue;
        if (made == traced) {
          found.name = found.nearest = entry.name;
          found.alike = 1;
          found.difference.clear();
          return found;
        }
        if (const double share = alike(traced, made); share > found.alike) {
          found.nearest = entry.name;
          found.alike = share;
          found.difference = first_difference(traced, made);
        }
      }
    } catch (const plan::InputError&) {
      continue;  // the schedule does not support these sizes
    }
  }
  return found;
}

}  // namespace pipewright::trace
