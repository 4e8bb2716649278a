#pragma once

// What a Program needs at once.

#include <vector>

#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

/// How many buffer slots each stage needs at once.
std::vector<int> slot_counts(const Program& program);
/// How many received tensors each rank holds at once, from the receive until the last use by the
/// stage: the receive buffers that one pool per rank needs.
std::vector<int> receive_slots(const Program& program);
/// How many versions of its weights each rank needs at once: 1, unless the Program is asynchronous.
/// A microbatch's backward uses the weights of its forward.
std::vector<int> weight_versions(const Program& program);

}  // namespace pipewright::plan
