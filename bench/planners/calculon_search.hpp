#pragma once

// The search that Calculon calls llm-optimal-execution: tries every execution of a batch on a
// number of devices, and returns the best.

#include "planners/calculon_inputs.hpp"

namespace pipewright::planners {

struct CalculonSearch {
  int devices = 1;
  int most_batch = 1;                // uses the largest batch that the replicas divide
  bool stops_at_microbatch = false;  // stops at the first microbatch size that is impossible
  bool tensor_overlap = true;
  bool data_overlap = true;
};

struct CalculonAnswer {
  double samples_per_s = 0;  // 0: no execution is possible
  CalculonExecution execution;
  int executions = 0;
  int possible = 0;
};

CalculonAnswer calculon_best(const CalculonModel& model, const CalculonMachine& machine,
                             const CalculonSearch& search);

}  // namespace pipewright::planners
