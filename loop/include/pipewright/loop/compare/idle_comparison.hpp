#pragma once

// Compares predicted and measured idle time, by cause.

#include <string>
#include <vector>

#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::loop {

/// Idle time by rank. Both lists are empty if one of the two timelines has no causes.
struct IdleComparison {
  std::vector<plan::IdleByCause> predicted, measured;
};

/// Compares two timelines, which must have the same number of ranks.
IdleComparison compare_idle(const plan::Timeline& predicted, const plan::Timeline& measured);

/// Returns a list by rank with `predicted` and `measured` idle time by cause, in seconds.
plan::Json idle_json(const IdleComparison& comparison);

/// Returns one line for people with the idle time of all ranks, or "" if no causes are known.
std::string idle_line(const IdleComparison& comparison);

}  // namespace pipewright::loop
