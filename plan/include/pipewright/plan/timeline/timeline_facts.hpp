#pragma once

// What may be said of an EventTable. One of ours is an iteration of a pipeline, whose ranks wait
// where they do not compute. A trace of others shows what threads did: its steps are known where it
// marks them, and what a thread waited for is not.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipewright/plan/timeline/event_table.hpp"

namespace pipewright::plan {

/// A foreign trace's marks of steps are tracks of this name, one for each rank that has some.
inline constexpr const char* steps_track = "steps";

/// The number of a step by the name of its mark: 7 of "ProfilerStep#7" (torch's profiler), "step 7"
/// and "iteration 7". Nothing of any other name.
std::optional<std::int64_t> step_number(std::string_view name);

/// From where the first rank begins a step to where the last rank ends it.
struct MarkedStep {
  std::int64_t number = 0;
  Seconds start;
  Seconds end;
  Seconds length() const { return end - start; }
};

struct TimelineFacts {
  /// The table is one iteration of a pipeline: it has a bubble, and idle time is waiting.
  bool is_iteration = false;
  /// The marked steps of a foreign trace, by start.
  std::vector<MarkedStep> steps{};

  /// The step of median length; null where no step is marked.
  const MarkedStep* typical_step() const;
};
TimelineFacts facts_of(const EventTable& table);

/// The length of the iteration, or of the typical step; nothing where neither is known.
std::optional<Seconds> iteration_of(const EventTable& table, const TimelineFacts& facts);

}  // namespace pipewright::plan
