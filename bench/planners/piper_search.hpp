#pragma once

// Piper's plan, under Piper's rules: contiguous stages, each with a tensor and a data parallel size
// and a choice of what to compute again, so that the slowest stage takes the least time a sample.

#include <vector>

#include "planners/piper_problem.hpp"

namespace pipewright::planners {

struct PiperStage {
  std::vector<int> nodes{};
  int tensor = 1;
  int data = 1;
  std::vector<int> variants{};  // of each node, by place in PiperSplit::variants
};

struct PiperPlan {
  double seconds_per_sample = 0;   // of the slowest stage
  std::vector<PiperStage> stages;  // first to last
};

/// What a plan takes, from its stages alone. A stage of compute p, parameters w and c bytes over
/// its borders (each edge there and back) takes (p + c / bandwidth) / d + 4 (d - 1) w / (d N
/// bandwidth) a sample with d copies of N microbatches. It holds a y + b bytes on a device, where y
/// is the sum of copies from it to the end, over d, rounded up. Throws InputError where nodes are
/// missing or doubled, stages do not follow each other, devices, microbatches or memory do not
/// suffice.
double piper_seconds(const PiperProblem& problem, const std::vector<PiperStage>& stages);

/// Optimal under these rules, to 1e-12, over all chains of order ideals, sizes and choices. Throws
/// Infeasible where no plan fits.
PiperPlan piper_plan(const PiperProblem& problem);

}  // namespace pipewright::planners
