#pragma once

// A prediction beside what was measured.

#include <string>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/timeline/action_comparison.hpp"
#include "pipewright/plan/timeline/comparison.hpp"
#include "pipewright/plan/timeline/kind_comparison.hpp"
#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::loop {

struct Comparison {
  plan::StepFigures predicted;
  plan::StepFigures measured;
  plan::KindTimes predicted_kinds;
  plan::KindTimes measured_kinds;
  plan::ActionComparison actions;
  plan::Json idle;        // per rank, by cause; empty where a side has none
  std::string idle_line;  // the same over all ranks, for people
};

/// Of two timelines with equally many ranks.
Comparison compare(const plan::Timeline& predicted, const plan::Timeline& measured);

/// The figures of both, the errors overall, by rank and by kind of action, and idle time by cause.
plan::Json to_json(const Comparison& comparison);

}  // namespace pipewright::loop
