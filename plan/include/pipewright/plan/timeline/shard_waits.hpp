#pragma once

// Waiting times in the middle of an action for a late tensor- or expert-parallel rank. A span gives
// only the duration of its waits, not when they happened. For overlapping spans, such as those of a
// fused pair, the waits are added up and placed at the end.

#include <vector>

#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::plan {

/// Returns the spans' `late` times as idle time with the cause Shards, by rank and time.
std::vector<IdleSpan> shard_waits(const Timeline& timeline);

/// Adds the result of `shard_waits` to the Timeline's idle time, sorted by rank and time.
Timeline with_shard_waits(Timeline timeline);

/// The end of the working part of each span, according to the idle time of a timeline. A view draws
/// the span up to there, followed by the wait.
class WorkEnds {
 public:
  WorkEnds(const std::vector<IdleSpan>& idle, int ranks);
  /// Returns until when a compute span works.
  Seconds of(int rank, Seconds start, Seconds end) const;

 private:
  std::vector<std::vector<IdleSpan>> waits_;  // by rank, in order of time
};

}  // namespace pipewright::plan
