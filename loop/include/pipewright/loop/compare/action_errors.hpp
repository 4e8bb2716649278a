#pragma once

// Figures of one step (iteration time, busy time, bubble, peak memory) and their prediction errors.

#include <string>
#include <vector>

#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::loop {

/// The figures of a timeline that are compared, for one step of the training.
struct StepFigures {
  plan::Seconds iteration;
  std::vector<plan::Seconds> busy;    // per rank
  std::vector<plan::Seconds> bubble;  // per rank: iteration less busy
  std::vector<plan::Bytes> peak;      // per rank
  /// Per rank: the part of busy spent in tensor-parallel communication.
  std::vector<plan::Seconds> shards{};
};
StepFigures figures_of(const plan::Timeline& timeline);

/// Returns 100 · (predicted − measured) / measured. Returns 0 if both are 0, and NaN if only
/// `measured` is 0.
double error_percent(double predicted, double measured);

/// Returns the keys `iteration_s`, `busy_s`, `bubble_s`, `peak_bytes` and, with tensor parallelism,
/// `shards_s`. All but the first are lists by rank.
plan::Json to_json(const StepFigures& figures);
/// Returns the keys of `to_json` with the error of each in percent; null if an error is undefined.
plan::Json error_json(const StepFigures& predicted, const StepFigures& measured);

/// Returns a table for people with predicted value, measured value and error, overall and by rank.
std::string comparison_table(const StepFigures& predicted, const StepFigures& measured);

}  // namespace pipewright::loop
