#pragma once

// The time of a plan under Piper's rules, from its stages alone.

#include <vector>

#include "planners/piper_problem.hpp"

namespace pipewright::planners {

struct PiperStage {
  std::vector<int> nodes{};
  int tensor = 1;
  int data = 1;
  std::vector<int> variants{};  // of each node, as an index into PiperSplit::variants
};

/// Returns the seconds per sample in the slowest stage. A stage with compute p, parameters w and c
/// bytes across its boundaries (each edge counts in both directions) takes (p + c / bandwidth) / d
/// + 4 (d - 1) w / (d N bandwidth) with d replicas of N microbatches. It holds a y + b bytes on a
/// device, where y is the number of replicas from this stage to the end, divided by d and rounded
/// up. Throws InputError if nodes are missing or duplicated, if stages do not follow each other,
/// and if devices, microbatches or memory do not suffice.
double piper_seconds(const PiperProblem& problem, const std::vector<PiperStage>& stages);

}  // namespace pipewright::planners
