#include "pipewright/plan/timeline/shard_waits.hpp"

#include <algorithm>
#include <tuple>

namespace pipewright::plan {
namespace {

bool before(const IdleSpan& a, const IdleSpan& b) {
  return std::tie(a.rank, a.start) < std::tie(b.rank, b.start);
}

/// Overlapping spans of a rank, merged.
struct Stretch {
  int rank = -1;
  Seconds start, end, late;
};

}  // namespace

std::vector<IdleSpan> shard_waits(const Timeline& timeline) {
  std::vector<const Span*> computing;
  for (const Span& span : timeline.spans)
    if (span.row == Row::Compute)
      computing.push_back(&span);
  std::stable_sort(computing.begin(), computing.end(), [](const Span* a, const Span* b) {
    return std::tie(a->rank, a->start) < std::tie(b->rank, b->start);
  });
  std::vector<IdleSpan> waits;
  Stretch stretch;
  const auto end_stretch = [&] {
    const Seconds start = std::max(stretch.start, stretch.end - stretch.late);
    if (start < stretch.end)
      waits.push_back({stretch.rank, IdleCause::Shards, start, stretch.end});
  };
  for (const Span* const span : computing) {
    if (span->rank != stretch.rank || span->start >= stretch.end) {
      end_stretch();
      stretch = {span->rank, span->start, span->end, {}};
    }
    stretch.end = std::max(stretch.end, span->end);
    stretch.late += span->late;
  }
  end_stretch();
  return waits;
}

Timeline with_shard_waits(Timeline timeline) {
  const std::vector<IdleSpan> waits = shard_waits(timeline);
  timeline.idle.insert(timeline.idle.end(), waits.begin(), waits.end());
  std::stable_sort(timeline.idle.begin(), timeline.idle.end(), before);
  return timeline;
}

WorkEnds::WorkEnds(const std::vector<IdleSpan>& idle, int ranks)
    : waits_(static_cast<std::size_t>(ranks)) {
  for (const IdleSpan& span : idle)
    if (span.cause == IdleCause::Shards)
      waits_[static_cast<std::size_t>(span.rank)].push_back(span);
  for (std::vector<IdleSpan>& of_rank : waits_)
    std::stable_sort(of_rank.begin(), of_rank.end(), before);
}

Seconds WorkEnds::of(int rank, Seconds start, Seconds end) const {
  const auto& waits = waits_[static_cast<std::size_t>(rank)];
  const auto wait = std::lower_bound(waits.begin(), waits.end(), end,
                                     [](const IdleSpan& a, Seconds at) { return a.end < at; });
  return wait == waits.end() ? end : std::max(start, std::min(end, wait->start));
}

}  // namespace pipewright::plan
