#pragma once

// Whose work a record is.

#include <cstddef>
#include <vector>

#include "pipewright/profiler/activity/gpu_record.hpp"
#include "pipewright/profiler/activity/work_range.hpp"

namespace pipewright::profiler {

struct Attribution {
  static constexpr int none = -1;
  std::vector<int> range_of;      // by record: the range that asked for this work
  std::vector<int> call_of;       // by record: the call that did
  std::size_t unclaimed = 0;      // work of no range
  std::size_t without_call = 0;   // work whose call was lost
  std::size_t without_times = 0;  // work that the device could not time; it counts nowhere else
};

/// By the label of the call. LibTorch computes backward on threads of its own, whose calls bear no
/// label: their work belongs to what the rank was at when they were made, and the rank is the one
/// whose labelled work ran on the same stream. Records may come in any order, and some be missing.
Attribution attribute(const Activity& activity, const std::vector<WorkRange>& ranges);

}  // namespace pipewright::profiler
