#pragma once

// The meaning of an EventTable. Our own tables show one iteration of a pipeline, whose ranks wait
// whenever they do not compute. A foreign trace shows the activity of threads: its steps are known
// only if it marks them, and the reasons for waiting are unknown.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipewright/plan/timeline/event_table.hpp"

namespace pipewright::plan {

/// Name of the tracks with a foreign trace's step marks; each rank with marks has one.
inline constexpr const char* steps_track = "steps";

/// Returns the step number in the name of a mark: 7 for "ProfilerStep#7" (torch's profiler), "step
/// 7" and "iteration 7". Returns nothing for any other name.
std::optional<std::int64_t> step_number(std::string_view name);

/// A marked step, from its start on the first rank to its end on the last rank.
struct MarkedStep {
  std::int64_t number = 0;
  Seconds start;
  Seconds end;
  Seconds length() const { return end - start; }
};

/// Facts derived from an EventTable.
struct TimelineFacts {
  /// The table is one iteration of a pipeline: it has a bubble, and idle time is waiting.
  bool is_iteration = false;
  /// The marked steps of a foreign trace, by start.
  std::vector<MarkedStep> steps{};

  /// Returns the step of median length, or null if no step is marked.
  const MarkedStep* typical_step() const;
};
TimelineFacts facts_of(const EventTable& table);

/// Returns the length of the iteration, or of the typical step, or nothing if neither is known.
std::optional<Seconds> iteration_of(const EventTable& table, const TimelineFacts& facts);

}  // namespace pipewright::plan
