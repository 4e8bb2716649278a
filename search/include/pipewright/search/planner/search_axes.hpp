#pragma once

// The axes along which every search of plans may choose. Each search defines the meaning of an
// empty list: all values that the sizes allow, or the scenario's value.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "pipewright/plan/partition/recompute.hpp"

namespace pipewright::search {

/// The layers of the stages: equally many, or such that stages take equally long. Balanced stages
/// with the embedding and the head have fewer layers, and no number has to divide another.
enum class StageSizes { Equal, Balanced };

struct SearchAxes {
  std::vector<int> tensor{}, pipeline{}, context{}, expert{};
  std::vector<int> chunks{}, microbatch{}, zero{};
  std::vector<plan::RecomputeMode> recompute{};
  std::vector<std::string> schedules{};
  std::vector<StageSizes> stage_sizes{};
  /// True if tensor-parallel ranks also partition the tokens between their cuts. Without tensor
  /// parallelism they never do.
  std::vector<bool> sequence_parallel{};
};

/// Returns the requested values, or else `otherwise`.
template <class Value>
std::vector<Value> asked_or(const std::vector<Value>& asked, std::vector<Value> otherwise) {
  return asked.empty() ? std::move(otherwise) : asked;
}

}  // namespace pipewright::search
