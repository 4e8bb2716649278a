#include "pipewright/models/transformer/cut_schedule.hpp"

#include <algorithm>

namespace pipewright::models {
namespace {

const plan::NamedLimit* find_limit(const plan::ScheduleDescriptor& schedule,
                                   const std::string& name) {
  const auto found = std::ranges::find(schedule.named_limits, name, &plan::NamedLimit::name);
  return found == schedule.named_limits.end() ? nullptr : &*found;
}

}  // namespace

const plan::ScheduleDescriptor& cut_schedule(const std::string& name) {
  for (const plan::ScheduleDescriptor& schedule : plan::schedules())
    if (find_limit(schedule, name) != nullptr)
      return schedule;
  return plan::find_schedule(name);
}

plan::ScheduleRequest schedule_request(const std::string& name, int ranks, int microbatches,
                                       int chunks, int group, const plan::ScheduleCosts& costs) {
  const plan::ScheduleDescriptor& schedule = cut_schedule(name);
  plan::ScheduleRequest request{.name = schedule.name,
                                .ranks = ranks,
                                .microbatches = microbatches,
                                .chunks = chunks,
                                .group = group,
                                .rank_of_stage = {},
                                .costs = {},
                                .memory_units = {}};
  if (const plan::NamedLimit* const limit = find_limit(schedule, name))
    request.memory_units = limit->memory_units(ranks);
  if (schedule.orders_by_times)
    request.costs = costs;
  return request;
}

}  // namespace pipewright::models
