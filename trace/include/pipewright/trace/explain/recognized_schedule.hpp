#pragma once

// Finds the schedule of the catalog that a run followed, action for action.

#include <string>

#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::trace {

/// Number of actions above which schedules that search for their orders are not tried.
inline constexpr int most_to_search = 4096;

struct RecognizedSchedule {
  std::string name{};        // empty: no schedule of the catalog matches
  std::string nearest{};     // the same name, or the closest schedule; empty: none has these sizes
  int chunks = 1;            // stages per rank
  double alike = 0;          // fraction of actions at the position where `nearest` has them
  std::string difference{};  // the first difference from `nearest`, as text
};

/// Compares with every schedule for the same numbers of ranks, microbatches and stages. An I
/// followed directly by its W counts as a B, and it does not matter if a forward and a backward are
/// fused: runtimes differ in both.
RecognizedSchedule recognized_schedule(const plan::Schedule& schedule);

}  // namespace pipewright::trace
