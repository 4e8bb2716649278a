#pragma once

// Numbers of buffers and weight versions that a Program needs at once.

#include <vector>

#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

/// Returns how many buffer slots each stage needs at once.
std::vector<int> slot_counts(const Program& program);
/// Returns how many received tensors each rank holds at once, from the receive until the stage's
/// last use: the size of one receive-buffer pool per rank.
std::vector<int> receive_slots(const Program& program);
/// Returns how many weight versions each rank needs at once: 1, unless the Program is asynchronous.
/// A microbatch's backward uses the weights of its forward.
std::vector<int> weight_versions(const Program& program);

}  // namespace pipewright::plan
