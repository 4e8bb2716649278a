#pragma once

// The search that Calculon calls llm-optimal-execution: every execution of a batch on so many
// devices, and the best.

#include "planners/calculon_inputs.hpp"

namespace pipewright::planners {

struct CalculonSearch {
  int devices = 1;
  int most_batch = 1;                // the largest batch that the replicas divide is taken
  bool stops_at_microbatch = false;  // larger ones are left out where none of a size is possible
  bool tensor_overlap = true;
  bool data_overlap = true;
};

struct CalculonAnswer {
  double samples_per_s = 0;  // 0: nothing is possible
  CalculonExecution execution;
  int executions = 0;
  int possible = 0;
};

CalculonAnswer calculon_best(const CalculonModel& model, const CalculonMachine& machine,
                             const CalculonSearch& search);

}  // namespace pipewright::planners
