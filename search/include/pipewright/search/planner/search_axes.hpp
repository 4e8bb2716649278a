#pragma once

// The axes along which every search of plans may choose. What an empty list means, the search says:
// all that the sizes allow, or what the scenario has.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "pipewright/plan/partition/recompute.hpp"

namespace pipewright::search {

/// How many layers the stages get: all have as many, or they take as long as each other, so that
/// those with the embedding and the head have fewer and none has to divide anything.
enum class StageSizes { Equal, Balanced };

struct SearchAxes {
  std::vector<int> tensor{}, pipeline{}, context{}, expert{};
  std::vector<int> chunks{}, microbatch{}, zero{};
  std::vector<plan::RecomputeMode> recompute{};
  std::vector<std::string> schedules{};
  std::vector<StageSizes> stage_sizes{};
  /// Whether tensor-parallel ranks also partition the tokens between their cuts. Without tensor
  /// parallelism they never do.
  std::vector<bool> sequence_parallel{};
};

/// The values that were asked for, or else `otherwise`.
template <class Value>
std::vector<Value> asked_or(const std::vector<Value>& asked, std::vector<Value> otherwise) {
  return asked.empty() ? std::move(otherwise) : asked;
}

}  // namespace pipewright::search
