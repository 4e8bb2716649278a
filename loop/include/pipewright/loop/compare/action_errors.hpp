#pragma once

// The figures by which a predicted and a measured step are compared (iteration time, busy time,
// bubble, peak memory), and the errors of the predicted ones.

#include <string>
#include <vector>

#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::loop {

/// The figures of one step's timeline.
struct StepFigures {
  plan::Seconds iteration;
  std::vector<plan::Seconds> busy;    // per rank: compute
  std::vector<plan::Seconds> bubble;  // per rank: iteration minus busy
  std::vector<plan::Bytes> peak;      // per rank: peak memory; 0: not sampled
  /// Per rank: the part of `busy` that is tensor-parallel communication, without waits for ranks
  /// that are late.
  std::vector<plan::Seconds> shards{};
};
StepFigures figures_of(const plan::Timeline& timeline);

/// Returns 100 · (predicted − measured) / measured. Returns 0 if both are 0, and NaN if only
/// `measured` is 0.
double error_percent(double predicted, double measured);

/// Returns an object with the keys `iteration_s`, `busy_s`, `bubble_s`, `peak_bytes` and, with
/// tensor parallelism, `shards_s`. All but the first are lists by rank.
plan::Json to_json(const StepFigures& figures);
/// Returns an object with the same keys, whose values are the errors in percent. An error is null
/// if a figure is missing, or if only the measured one is 0.
plan::Json error_json(const StepFigures& predicted, const StepFigures& measured);

/// Returns a text table with the predicted value, the measured value and the error of each figure:
/// first the iteration time, then the figures of each rank.
std::string comparison_table(const StepFigures& predicted, const StepFigures& measured);

}  // namespace pipewright::loop
