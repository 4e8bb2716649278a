#pragma once

// Idle time by cause, predicted beside measured.

#include <string>
#include <vector>

#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::loop {

/// By rank; empty where one of the two Timelines has no causes.
struct IdleComparison {
  std::vector<plan::IdleByCause> predicted, measured;
};

/// Both timelines must have equally many ranks.
IdleComparison compare_idle(const plan::Timeline& predicted, const plan::Timeline& measured);

/// A list by rank: what `predicted` and `measured` say, in seconds, by cause.
plan::Json idle_json(const IdleComparison& comparison);

/// For people, over all ranks: a line, or nothing.
std::string idle_line(const IdleComparison& comparison);

}  // namespace pipewright::loop
