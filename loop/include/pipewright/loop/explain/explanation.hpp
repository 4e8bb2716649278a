#pragma once

// What the traces of a pipeline's ranks say, in one value: where the time of an iteration goes, and
// what would make it shorter.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/loop/explain/alternatives.hpp"
#include "pipewright/loop/stopped.hpp"
#include "pipewright/plan/json/json.hpp"

namespace pipewright::loop {

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

/// Reads one trace for each rank. As `traced_pipeline`, of which it is made. `goes_on` counts the
/// files, and what would be faster as one more; Stopped is thrown where it says so.
TraceExplanation explain_traces(const std::vector<std::filesystem::path>& files,
                                std::optional<int> step, std::vector<std::string>& problems,
                                const GoesOn& goes_on = {});

plan::Json to_json(const TraceExplanation& explanation);

/// Leaves timeline.pwt, timeline.json, schedule.csv, scenario.json and costs.json.
void write_explanation(const std::filesystem::path& folder, const TraceExplanation& explanation);

}  // namespace pipewright::loop
