#pragma once

// Where ranks wait in the middle of an action for one that shares out their stages and is late. A
// span says for how long, and not when: of spans that overlap, as those of a fused pair, the waits
// are put together and at the end.

#include <vector>

#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::plan {

/// What the spans name as `late`, as idle time with the cause Shards, by rank and time.
std::vector<IdleSpan> shard_waits(const Timeline& timeline);

/// The Timeline with these among its idle time, by rank and time.
Timeline with_shard_waits(Timeline timeline);

/// Until when spans work, by the idle time of a timeline: whoever shows a span shows it so far, and
/// the wait behind it.
class WorkEnds {
 public:
  WorkEnds(const std::vector<IdleSpan>& idle, int ranks);
  /// Of a span that computes.
  Seconds of(int rank, Seconds start, Seconds end) const;

 private:
  std::vector<std::vector<IdleSpan>> waits_;  // by rank, in order of time
};

}  // namespace pipewright::plan
