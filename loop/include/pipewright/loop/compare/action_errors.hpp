#pragma once

// A prediction laid beside what happened.

#include <string>
#include <vector>

#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::loop {

/// The figures of one timeline that are compared, as a step of the training has them.
struct StepFigures {
  plan::Seconds iteration;
  std::vector<plan::Seconds> busy;      // per rank
  std::vector<plan::Seconds> bubble;    // per rank: iteration less busy
  std::vector<plan::Bytes> peak;        // per rank
  std::vector<plan::Seconds> shards{};  // per rank: of its busy time, with its shards
};
StepFigures figures_of(const plan::Timeline& timeline);

/// 100 · (predicted − measured) / measured; 0 when both are 0, NaN when only the measured one is.
double error_percent(double predicted, double measured);

/// Keys `iteration_s`, `busy_s`, `bubble_s`, `peak_bytes`, and where a rank has shards, `shards_s`;
/// all but the first are lists by rank.
plan::Json to_json(const StepFigures& figures);
/// The keys of `to_json` with the error of each in per cent; null where there is none to give.
plan::Json error_json(const StepFigures& predicted, const StepFigures& measured);

/// A table for people: predicted, measured and error, overall and by rank.
std::string comparison_table(const StepFigures& predicted, const StepFigures& measured);

}  // namespace pipewright::loop
