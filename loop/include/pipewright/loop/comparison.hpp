#pragma once

// A prediction beside what was measured.

#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/timeline/comparison.hpp"
#include "pipewright/plan/timeline/kind_comparison.hpp"
#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::loop {

struct Comparison {
  plan::StepFigures predicted;
  plan::StepFigures measured;
  plan::KindTimes predicted_kinds;
  plan::KindTimes measured_kinds;
};

/// Of two timelines with equally many ranks.
Comparison compare(const plan::Timeline& predicted, const plan::Timeline& measured);

/// The figures of both, and the errors: overall, by rank, by kind of action.
plan::Json to_json(const Comparison& comparison);

}  // namespace pipewright::loop
