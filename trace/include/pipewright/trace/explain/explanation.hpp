#pragma once

// What the traces of a pipeline's ranks say, in one value: where the time of an iteration goes, and
// what would make it shorter.

#include <functional>
#include <vector>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/trace/explain/alternatives.hpp"

namespace pipewright::trace {

struct TracedRankTimes {
  double busy_s = 0;
  plan::IdleByCause idle{};  // with `busy_s` it makes the iteration
  double waiting_s = 0;      // of its receives: the sender had not begun
  double moving_s = 0;       // … it had
};

struct TraceExplanation {
  TracedPipeline pipeline;
  RecognisedSchedule schedule;
  TracedCosts costs;
  Alternatives alternatives;
  std::vector<TracedRankTimes> ranks;
  int slowest_stage = 0;
  double slowest_over_mean = 1;  // its compute time over the mean of the stages
};

/// `ask` is called now and then, and may throw.
TraceExplanation explanation_of(TracedPipeline pipeline, const std::function<void()>& ask);

plan::Json to_json(const TraceExplanation& explanation);

}  // namespace pipewright::trace
