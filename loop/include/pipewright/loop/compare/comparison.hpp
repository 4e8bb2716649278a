#pragma once

// Compares a predicted with a measured timeline: figures, actions, kinds of action and idle time.

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

/// Compares two timelines, which must have the same number of ranks.
Comparison compare(const plan::Timeline& predicted, const plan::Timeline& measured);

/// Returns the figures of both timelines, the errors overall, by rank and by kind of action, and
/// the idle time by cause.
plan::Json to_json(const Comparison& comparison);

}  // namespace pipewright::loop
