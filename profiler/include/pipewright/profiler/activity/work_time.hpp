#pragma once

// Splits the time of a range: the device worked, it waited for the host to submit work, or it
// waited although work was submitted.

#include <vector>

#include "pipewright/plan/quantity.hpp"
#include "pipewright/profiler/activity/attribution.hpp"

namespace pipewright::profiler {

struct WorkTime {
  plan::Seconds device;   // at least one of its kernels, copies or sets ran
  plan::Seconds launch;   // its stream was idle, because the host had not submitted more
  plan::Seconds waiting;  // … although the host had, or the host waited for another rank's data
  plan::Seconds host;     // time in which the host was busy with it
  int count = 0;          // number of kernels, copies and memory sets

  /// Returns the time that it adds to a step on this host, in which its stream does nothing else.
  plan::Seconds elapsed() const { return device + launch + waiting; }
  /// Returns true if the range is host-bound: a busier host would make it take longer.
  bool is_launch_bound() const { return launch.value > launch_bound_share * elapsed().value; }
  static constexpr double launch_bound_share = 0.1;
};

/// Returns the times by range. Gaps are those of the rank's compute stream, which has most of its
/// work. A gap ends where the stream's next work begins. Until that work was submitted, the gap
/// belongs to the range in which the host was; after that, to the range that submitted the work.
/// Work on the CPU is submitted when it begins.
std::vector<WorkTime> work_times(const Activity& activity, const Attribution& attribution,
                                 const std::vector<WorkRange>& ranges);

/// Returns the self time of each record: the time in which no record nested in it runs on the same
/// stream. Operators call other operators, and each second counts once. By record; 0 for records
/// that are not work.
std::vector<plan::Seconds> own_times(const Activity& activity);

/// Returns the compute stream by rank, from 0 on. It is meaningless for a rank without work.
std::vector<StreamId> compute_streams(const Activity& activity, const Attribution& attribution,
                                      const std::vector<WorkRange>& ranges);

}  // namespace pipewright::profiler
