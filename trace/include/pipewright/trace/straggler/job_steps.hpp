#pragma once

// The whole steps of a job's trace laid onto one graph: when each operation began, and how long it
// took, step by step.

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
  std::vector<int> numbers;  // of the steps, rising
  std::vector<LeftOutStep> left_out{};
  JobTimes recorded;               // how long each operation took
  JobTimes begins;                 // after the step's first event has begun
  std::vector<double> measured{};  // by step: from the first begin to the last end
  std::vector<double> zero{};      // by step: when its first event began, in the trace's time
};

/// Steps that do not have the operations that most have are left out. Computes of a stage run in
/// the order in which they began in the first step on replica 0. Throws InputError that names
/// stage and operation where the steps are none of a pipeline.
JobSteps job_steps(const JobTrace& trace);

}  // namespace pipewright::trace
