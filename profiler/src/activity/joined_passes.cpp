#include "pipewright/profiler/activity/joined_passes.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace pipewright::profiler {
namespace {

struct Stretch {
  Nanoseconds start = std::numeric_limits<Nanoseconds>::max();
  Nanoseconds end = 0;
};

/// Calls `visit(start, end)` for all records and ranges with times.
template <class Visit>
void for_each_time(RecordedPass& pass, const Visit& visit) {
  for (WorkRange& range : pass.ranges)
    visit(range.start, range.end);
  for (GpuRecord& record : pass.activity.records)
    if (record.end > 0)
      visit(record.start, record.end);
}

Stretch stretch_of(RecordedPass& pass) {
  Stretch stretch;
  for_each_time(pass, [&](const Nanoseconds& start, const Nanoseconds& end) {
    stretch.start = std::min(stretch.start, start);
    stretch.end = std::max(stretch.end, end);
  });
  return stretch;
}

/// Moves a pass to begin at `begin`. Moving backwards relies on unsigned wrap-around.
void move_to(RecordedPass& pass, Nanoseconds begin) {
  const Nanoseconds by = begin - stretch_of(pass).start;
  for_each_time(pass, [by](Nanoseconds& start, Nanoseconds& end) {
    start += by;
    end += by;
  });
}

void append(Activity& all, const Activity& next) {
  const auto names = static_cast<std::uint32_t>(all.names.size());
  all.names.insert(all.names.end(), next.names.begin(), next.names.end());
  for (GpuRecord record : next.records) {
    record.name += names;
    all.records.push_back(record);
  }
  all.dropped += next.dropped;
  all.unread += next.unread;
  all.late_buffers += next.late_buffers;
  all.missing_buffers += next.missing_buffers;
}

}  // namespace

RecordedPass joined(std::vector<RecordedPass> passes) {
  RecordedPass all;
  for (std::size_t at = 0; at < passes.size(); ++at) {
    RecordedPass& next = passes[at];
    if (at > 0)
      move_to(next, stretch_of(all).end);
    for (WorkRange& range : next.ranges) {
      range.instruction.stage = static_cast<int>(at);
      all.ranges.push_back(range);
    }
    append(all.activity, next.activity);
  }
  return all;
}

}  // namespace pipewright::profiler
