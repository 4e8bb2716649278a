#pragma once

// Everything that the traces of one pipeline's ranks show, as one value: where the time of an
// iteration goes, and what would shorten it.

#include <functional>
#include <vector>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/trace/explain/alternatives.hpp"

namespace pipewright::trace {

struct TracedRankTimes {
  double busy_s = 0;
  plan::IdleByCause idle{};  // adds up to the iteration time together with `busy_s`
  double waiting_s = 0;      // time in receives before the sender had begun to send
  double moving_s = 0;       // time in receives after the sender had begun to send
};

struct TraceExplanation {
  TracedPipeline pipeline;
  RecognizedSchedule schedule;
  TracedCosts costs;
  Alternatives alternatives;
  std::vector<TracedRankTimes> ranks;
  int slowest_stage = 0;
  double slowest_over_mean = 1;  // the slowest stage's compute time divided by the mean over all
                                 // stages
};

/// Explains the pipeline. `ask` is called from time to time and may throw to cancel.
TraceExplanation explanation_of(TracedPipeline pipeline, const std::function<void()>& ask);

plan::Json to_json(const TraceExplanation& explanation);

}  // namespace pipewright::trace
