#pragma once

// A prediction beside what was measured.

#include "pipewright/loop/compare/action_comparison.hpp"
#include "pipewright/loop/compare/action_errors.hpp"
#include "pipewright/loop/compare/idle_comparison.hpp"
#include "pipewright/loop/compare/kind_comparison.hpp"
#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::loop {

struct Comparison {
  StepFigures predicted;
  StepFigures measured;
  KindTimes predicted_kinds;
  KindTimes measured_kinds;
  ActionComparison actions;
  IdleComparison idle;
};

/// Both timelines must have equally many ranks.
Comparison compare(const plan::Timeline& predicted, const plan::Timeline& measured);

/// The figures of both, the errors overall, by rank and by kind of action, and idle time by cause.
plan::Json to_json(const Comparison& comparison);

}  // namespace pipewright::loop
