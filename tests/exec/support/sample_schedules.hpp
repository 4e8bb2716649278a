// Schedules for the six layers of the small GPT.
#pragma once

#include <vector>

#include "exec/support/small_gpt.hpp"
#include "pipewright/plan/schedules/placement_of.hpp"
#include "support/make_schedule.hpp"

namespace pipewright::test {

inline plan::Partition partition_for(const plan::Schedule& schedule) {
  return small_partition(plan::stage_count(schedule));
}

/// Returns one schedule of each kind: full and split backwards, several chunks per rank, a V, two
/// directions.
inline const std::vector<plan::Schedule>& schedules() {
  static const std::vector<plan::Schedule> all{make("1f1b", 1, 4),
                                               make("gpipe", 3, 4),
                                               make("zb-h1", 3, 4),
                                               make("looped-bfs", 2, 4, 3),
                                               make("zbv", 2, 4),
                                               make("dualpipe", 2, 8),
                                               make("interleaved-zb", 2, 4, 2)};
  return all;
}

}  // namespace pipewright::test
