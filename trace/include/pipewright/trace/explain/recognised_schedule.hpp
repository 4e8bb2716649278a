#pragma once

// Which schedule of the catalogue a run followed, action for action.

#include <string>

#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::trace {

/// Actions, beyond which schedules that search for their orders are left out.
inline constexpr int most_to_search = 4096;

struct RecognisedSchedule {
  std::string name{};        // empty: none of the catalogue
  std::string nearest{};     // the name, or what comes nearest to it; empty: none has these sizes
  int chunks = 1;            // stages of a rank
  double alike = 0;          // of the nearest: the share of actions that stand where it has them
  std::string difference{};  // the first one from the nearest, in words
};

/// Compares with every schedule for as many ranks, microbatches and stages. An I with its W right
/// behind is a B, and whether a forward and a backward are fused is not looked at: runtimes differ
/// in both.
RecognisedSchedule recognised_schedule(const plan::Schedule& schedule);

}  // namespace pipewright::trace
