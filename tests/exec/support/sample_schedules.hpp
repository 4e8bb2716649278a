// Schedules for the six layers of the small GPT.
#pragma once

#include <string>
#include <vector>

#include "exec/support/small_gpt.hpp"
#include "pipewright/plan/schedule_request.hpp"

namespace pipewright::test {

inline plan::Schedule schedule(const std::string& name, int ranks, int microbatches,
                               int chunks = 0) {
  plan::ScheduleRequest request;
  request.name = name;
  request.ranks = ranks;
  request.microbatches = microbatches;
  request.chunks = chunks;
  return plan::make_schedule(request);
}

inline plan::Partition partition_for(const plan::Schedule& schedule) {
  auto partition = small_partition(plan::stage_count(schedule));
  partition.rank_of_stage = plan::placement_of(schedule).routes.front();
  return partition;
}

/// One of each kind: full and split backwards, several chunks a rank, a V, two directions.
inline const std::vector<plan::Schedule>& schedules() {
  static const std::vector<plan::Schedule> all{schedule("1f1b", 1, 4),
                                               schedule("gpipe", 3, 4),
                                               schedule("zb-h1", 3, 4),
                                               schedule("looped-bfs", 2, 4, 3),
                                               schedule("zbv", 2, 4),
                                               schedule("dualpipe", 2, 8),
                                               schedule("interleaved-zb", 2, 4, 2)};
  return all;
}

}  // namespace pipewright::test
