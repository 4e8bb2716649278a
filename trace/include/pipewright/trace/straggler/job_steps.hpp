#pragma once

// Maps the whole steps of a job's trace to one graph, with the begin and duration of each operation
// in each step.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/trace/straggler/replay.hpp"

namespace pipewright::trace {

struct LeftOutStep {
  int number = 0;
  std::string why;
};

struct JobSteps {
  JobPlan plan;
  JobGraph graph;
  std::vector<int> numbers;  // step numbers, ascending
  std::vector<LeftOutStep> left_out{};
  JobTimes recorded;               // duration of each operation
  JobTimes begins;                 // since the begin of the step's first event
  std::vector<double> measured{};  // by step: from the first begin to the last end
  std::vector<double> zero{};      // by step: begin of its first event, in the trace's time
};

/// Maps the steps of a trace. Steps whose operations differ from those of most steps are left out.
/// Computes of a stage run in the order in which they began in the first step on replica 0. Throws
/// InputError that names stage and operation if the steps are not those of a pipeline.
JobSteps job_steps(const JobTrace& trace);

}  // namespace pipewright::trace
