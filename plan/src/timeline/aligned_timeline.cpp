#include "pipewright/plan/timeline/aligned_timeline.hpp"

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

#include "pipewright/plan/timeline/timeline_transfers.hpp"

namespace pipewright::plan {
namespace {

/// Returns the spans of each reduction. The nth span with the same text on each rank belongs to the
/// same reduction.
std::vector<std::vector<const Span*>> reductions_of(const Timeline& timeline) {
  std::map<std::pair<int, std::string>, int> runs;
  std::map<std::pair<std::string, int>, std::vector<const Span*>> reductions;
  for (const Span& span : timeline.spans)
    if (span.row == Row::Reduce)
      reductions[{span.action, runs[{span.rank, span.action}]++}].push_back(&span);
  std::vector<std::vector<const Span*>> members;
  members.reserve(reductions.size());
  for (auto& [name, spans] : reductions)
    members.push_back(std::move(spans));
  return members;
}

/// Calls `change(rank, time)` for every time that a rank measured.
template <class Change>
void for_each_time(Timeline& timeline, const Change& change) {
  for (Span& span : timeline.spans) {
    change(span.rank, span.start);
    change(span.rank, span.end);
  }
  for (MemorySample& sample : timeline.memory)
    change(sample.rank, sample.time);
  for (IdleSpan& idle : timeline.idle) {
    change(idle.rank, idle.start);
    change(idle.rank, idle.end);
  }
}

}  // namespace

std::vector<ClockObservation> passages_of(const Timeline& timeline) {
  std::vector<ClockObservation> passages;
  for (const auto& [sent, received] : transfers_of(timeline)) {
    const Span& send = timeline.spans[sent];
    const Span& receive = timeline.spans[received];
    passages.push_back({send.rank, receive.rank, send.start, receive.end});
  }
  for (const auto& members : reductions_of(timeline))
    for (const Span* const from : members)
      for (const Span* const to : members)
        if (from != to)
          passages.push_back({from->rank, to->rank, from->start, to->end});
  return passages;
}

Timeline aligned(Timeline timeline, const ClockOffsets& clocks) {
  assert(clocks.offset.size() == static_cast<std::size_t>(timeline.ranks));
  Seconds earliest;
  for_each_time(timeline, [&](int rank, Seconds& time) {
    time -= clocks.offset[static_cast<std::size_t>(rank)];
    earliest = std::min(earliest, time);
  });
  timeline.length -= earliest;
  for_each_time(timeline, [&](int, Seconds& time) {
    time -= earliest;
    timeline.length = std::max(timeline.length, time);
  });
  return timeline;
}

}  // namespace pipewright::plan
