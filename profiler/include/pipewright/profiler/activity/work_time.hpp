#pragma once

// Where the time of a range went: the device worked, waited for the host to ask, or waited though
// it had been asked.

#include <vector>

#include "pipewright/plan/quantity.hpp"
#include "pipewright/profiler/activity/attribution.hpp"

namespace pipewright::profiler {

struct WorkTime {
  plan::Seconds device;   // at least one of its kernels, copies or sets ran
  plan::Seconds launch;   // its stream was idle, as the host had not asked for more
  plan::Seconds waiting;  // … though the host had, or itself waited for another rank's data
  plan::Seconds host;     // that the host was at it, and could do nothing else
  int count = 0;          // of kernels, copies and sets

  /// What it adds to a step on this host: its stream was at nothing else.
  plan::Seconds elapsed() const { return device + launch + waiting; }
  /// Whether the host decides how long it takes, as one that has more to do takes longer.
  bool is_launch_bound() const { return launch.value > launch_bound_share * elapsed().value; }
  static constexpr double launch_bound_share = 0.1;
};

/// By range. Gaps are those of the stream on which the rank computes: the one with most of its
/// work. A gap ends where the stream's next work begins; up to when that was asked for, it belongs
/// to what the host was at meanwhile, and from then on to what asked. Work on the CPU asks for
/// itself.
std::vector<WorkTime> work_times(const Activity& activity, const Attribution& attribution,
                                 const std::vector<WorkRange>& ranges);

/// For each record the time in which none ran that lies within it on the same stream: an operator
/// calls others, and each second counts once. By record; 0 of what is no work.
std::vector<plan::Seconds> own_times(const Activity& activity);

/// By rank from 0: its stream; of a rank without work it is of no meaning.
std::vector<StreamId> compute_streams(const Activity& activity, const Attribution& attribution,
                                      const std::vector<WorkRange>& ranges);

}  // namespace pipewright::profiler
