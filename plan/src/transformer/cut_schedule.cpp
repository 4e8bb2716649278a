#include "pipewright/plan/transformer/cut_schedule.hpp"

#include "pipewright/plan/generators/schedule_catalogue.hpp"

namespace pipewright::plan {
namespace {

/// In units of half of what a microbatch keeps: its input gradient frees one, the weight gradient
/// the other. 0: it is no searched one.
int memory_units(const std::string& schedule, int ranks) {
  return schedule == "zb-2p" ? 4 * ranks : 0;
}

}  // namespace

const std::vector<std::string>& searched_schedules() {
  static const std::vector<std::string> names{"zb-2p"};
  return names;
}

ScheduleRequest schedule_request(const std::string& schedule, int ranks, int microbatches,
                                 int chunks, int group, const ScheduleCosts& costs) {
  const int units = memory_units(schedule, ranks);
  ScheduleRequest request{.name = units > 0 ? "zb-auto" : schedule,
                          .ranks = ranks,
                          .microbatches = microbatches,
                          .chunks = chunks,
                          .group = group,
                          .rank_of_stage = {},
                          .costs = {},
                          .memory_units = {}};
  if (units > 0)
    request.memory_units = units;
  if (orders_by_times(schedule))
    request.costs = costs;
  return request;
}

bool orders_by_times(const std::string& schedule) {
  return memory_units(schedule, 1) > 0 || find_schedule(schedule).orders_by_times;
}

bool steps_by_rank(const std::string& schedule) {
  return memory_units(schedule, 1) > 0 || schedule == "v-half" || schedule == "v-min" ||
         find_schedule(schedule).bubble_is_of_span;
}

}  // namespace pipewright::plan
