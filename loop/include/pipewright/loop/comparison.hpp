#pragma once

// A prediction beside what was measured.

#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/timeline/action_comparison.hpp"
#include "pipewright/plan/timeline/comparison.hpp"
#include "pipewright/plan/timeline/idle_comparison.hpp"
#include "pipewright/plan/timeline/kind_comparison.hpp"
#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::loop {

struct Comparison {
  plan::StepFigures predicted;
  plan::StepFigures measured;
  plan::KindTimes predicted_kinds;
  plan::KindTimes measured_kinds;
  plan::ActionComparison actions;
  plan::IdleComparison idle;
};

/// Both timelines must have equally many ranks.
Comparison compare(const plan::Timeline& predicted, const plan::Timeline& measured);

/// The figures of both, the errors overall, by rank and by kind of action, and idle time by cause.
plan::Json to_json(const Comparison& comparison);

}  // namespace pipewright::loop
