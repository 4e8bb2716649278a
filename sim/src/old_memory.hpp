#pragma once

#include <vector>

#include "pipewright/plan/program.hpp"
#include "pipewright/plan/stage_costs.hpp"
#include "pipewright/plan/timeline.hpp"

namespace pipewright::sim {

/// The memory of every rank over time: parameters, gradients and optimizer state throughout;
/// what a LOAD brings and a forward keeps, until the backward ends; an input gradient, from the
/// backward that makes it to the end of the one that uses it; and, while an action runs, what it
/// needs beside. Samples come in order of rank and time.
std::vector<plan::MemorySample> memory_curve(const plan::Program& program,
                                             const std::vector<plan::StageCost>& costs,
                                             const std::vector<plan::Span>& spans);

}  // namespace pipewright::sim
