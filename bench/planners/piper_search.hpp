#pragma once

// Piper's planner under Piper's rules. A plan consists of contiguous stages, each with a
// tensor-parallel size, a data-parallel size and a choice of what to recompute. The best plan is
// the one whose slowest stage takes the least time per sample.

#include <vector>

#include "planners/piper_price.hpp"
#include "planners/piper_problem.hpp"

namespace pipewright::planners {

struct PiperPlan {
  double seconds_per_sample = 0;   // of the slowest stage
  std::vector<PiperStage> stages;  // first to last
};

/// Returns the optimal plan under the rules of `piper_seconds`, to a relative 1e-12, over all
/// chains of order ideals, sizes and choices. Throws Infeasible if no plan fits.
PiperPlan piper_plan(const PiperProblem& problem);

}  // namespace pipewright::planners
