#include "pipewright/models/transformer/cut_schedule.hpp"

#include "pipewright/plan/generators/schedule_catalogue.hpp"

namespace pipewright::models {
plan::ScheduleRequest schedule_request(const std::string& schedule, int ranks, int microbatches,
                                       int chunks, int group, const plan::ScheduleCosts& costs) {
  const bool is_searched = schedule == searched_schedule;
  plan::ScheduleRequest request{.name = is_searched ? "zb-auto" : schedule,
                                .ranks = ranks,
                                .microbatches = microbatches,
                                .chunks = chunks,
                                .group = group,
                                .rank_of_stage = {},
                                .costs = {},
                                .memory_units = {}};
  if (is_searched)
    request.memory_units = 4 * ranks;  // halves of what a microbatch keeps: each gradient frees one
  if (orders_by_times(schedule))
    request.costs = costs;
  return request;
}

bool orders_by_times(const std::string& schedule) {
  return schedule == searched_schedule || plan::find_schedule(schedule).orders_by_times;
}

bool steps_by_rank(const std::string& schedule) {
  return schedule == searched_schedule || schedule == "v-half" || schedule == "v-min" ||
         plan::find_schedule(schedule).bubble_is_of_span;
}

}  // namespace pipewright::models
