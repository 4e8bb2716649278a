#pragma once

// What a plan takes under Piper's rules, from its stages alone.

#include <vector>

#include "planners/piper_problem.hpp"

namespace pipewright::planners {

struct PiperStage {
  std::vector<int> nodes{};
  int tensor = 1;
  int data = 1;
  std::vector<int> variants{};  // of each node, by place in PiperSplit::variants
};

/// Seconds of a sample in the slowest stage. A stage of compute p, parameters w and c bytes over
/// its borders (each edge there and back) takes (p + c / bandwidth) / d + 4 (d - 1) w / (d N
/// bandwidth) with d copies of N microbatches. It holds a y + b bytes on a device, where y is the
/// sum of copies from it to the end, over d, rounded up. Throws InputError where nodes are missing
/// or doubled, stages do not follow each other, devices, microbatches or memory do not suffice.
double piper_seconds(const PiperProblem& problem, const std::vector<PiperStage>& stages);

}  // namespace pipewright::planners
