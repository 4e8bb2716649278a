#pragma once

// Idle time by cause, predicted beside measured.

#include <string>
#include <vector>

#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::plan {

/// By rank; empty where one of the two Timelines has no causes.
struct IdleComparison {
  std::vector<IdleByCause> predicted, measured;
};

/// Both timelines must have equally many ranks.
IdleComparison compare_idle(const Timeline& predicted, const Timeline& measured);

/// A list by rank: what `predicted` and `measured` say, in seconds, by cause.
Json idle_json(const IdleComparison& comparison);

/// For people, over all ranks: a line, or nothing.
std::string idle_line(const IdleComparison& comparison);

}  // namespace pipewright::plan
