#pragma once

// Attributes records to the host ranges that submitted the work.

#include <cstddef>
#include <vector>

#include "pipewright/profiler/activity/gpu_record.hpp"
#include "pipewright/profiler/activity/work_range.hpp"

namespace pipewright::profiler {

struct Attribution {
  static constexpr int none = -1;
  std::vector<int> range_of;      // by record: the range that submitted this work
  std::vector<int> call_of;       // by record: the call that submitted it
  std::size_t unclaimed = 0;      // work without a range
  std::size_t without_call = 0;   // work whose call was lost
  std::size_t without_times = 0;  // work that the device could not time; it counts nowhere else
};

/// Attributes work by the label of its call. LibTorch computes backward on separate threads, whose
/// calls have no label: their work belongs to the rank's range at the time of the call, and the
/// rank is the one whose labeled work ran on the same stream. Records may be in any order, and some
/// may be missing.
Attribution attribute(const Activity& activity, const std::vector<WorkRange>& ranges);

}  // namespace pipewright::profiler
