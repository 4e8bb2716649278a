#pragma once

// The complete steps of a job's trace, with one graph of operations for all of them, and the start
// and duration of each operation in each step.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/trace/straggler/replay.hpp"

namespace pipewright::trace {

/// A step that was left out, with the reason.
struct OmittedStep {
  int number = 0;
  std::string why;
};

struct JobSteps {
  JobPlan plan;
  JobGraph graph;
  std::vector<int> numbers;  // of the steps, as in the trace; ascending
  std::vector<OmittedStep> left_out{};
  // All times are in seconds.
  JobTimes recorded;               // duration of each operation
  JobTimes begins;                 // start of each operation after the step's first event began
  std::vector<double> measured{};  // by step: from the start of its first event to its last end
  std::vector<double> zero{};      // by step: start of its first event, on the trace's clock
};

/// Builds the graph and the times of a trace. Steps in which a worker has other numbers of
/// operations than in most steps are left out. The graph has the forwards and backwards of a stage
/// in the order in which they began in the first remaining step on replica 0. Throws InputError
/// that names stage and operation if the steps are not those of a pipeline.
JobSteps job_steps(const JobTrace& trace);

}  // namespace pipewright::trace
