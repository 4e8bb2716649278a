#include "pipewright/profiler/activity/work_time.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace pipewright::profiler {
namespace {

using Interval = std::pair<Nanoseconds, Nanoseconds>;

plan::Seconds seconds(Nanoseconds from, Nanoseconds to) {
  return {to > from ? static_cast<double>(to - from) * 1e-9 : 0};
}

/// Returns the time in which at least one of the intervals runs.
plan::Seconds covered(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  plan::Seconds sum;
  Nanoseconds until = 0;
  for (const auto& [start, end] : intervals) {
    sum += seconds(std::max(start, until), end);
    until = std::max(until, end);
  }
  return sum;
}

const GpuRecord& record_at(const Activity& activity, int record) {
  return activity.records[static_cast<std::size_t>(record)];
}

/// Returns when the host submitted the work; for work on the CPU, its start.
Nanoseconds asked_for(const Activity& activity, const Attribution& attribution, int record) {
  const GpuRecord& work = record_at(activity, record);
  const int call = attribution.call_of[static_cast<std::size_t>(record)];
  if (call == Attribution::none)
    return work.start;
  return std::min(record_at(activity, call).end, work.start);
}

/// Returns the ranges of each rank in the order of time.
std::map<int, std::vector<int>> ranges_by_rank(const std::vector<WorkRange>& ranges) {
  std::map<int, std::vector<int>> by_rank;
  for (std::size_t range = 0; range < ranges.size(); ++range)
    by_rank[ranges[range].rank].push_back(static_cast<int>(range));
  for (auto& [rank, own] : by_rank)
    std::sort(own.begin(), own.end(), [&](int a, int b) {
      return ranges[static_cast<std::size_t>(a)].start < ranges[static_cast<std::size_t>(b)].start;
    });
  return by_rank;
}

/// Adds the time in [from, to) to the ranges in which the host was, while the device had nothing to
/// do. In a receive the host could not submit more, so that time counts as waiting.
void add_launch(const std::vector<WorkRange>& ranges, const std::vector<int>& own, Nanoseconds from,
                Nanoseconds to, std::vector<WorkTime>& times) {
  auto first = std::upper_bound(own.begin(), own.end(), from, [&](Nanoseconds when, int range) {
    return when < ranges[static_cast<std::size_t>(range)].end;
  });
  for (; first != own.end(); ++first) {
    const auto range = static_cast<std::size_t>(*first);
    if (ranges[range].start >= to)
      return;
    WorkTime& time = times[range];
    plan::Seconds& gap =
        plan::is_receive(ranges[range].instruction.kind) ? time.waiting : time.launch;
    gap += seconds(std::max(from, ranges[range].start), std::min(to, ranges[range].end));
  }
}

}  // namespace

std::vector<StreamId> compute_streams(const Activity& activity, const Attribution& attribution,
                                      const std::vector<WorkRange>& ranges) {
  std::map<int, std::map<StreamId, double>> busy;
  int ranks = 0;
  for (const WorkRange& range : ranges)
    ranks = std::max(ranks, range.rank + 1);
  for (std::size_t r = 0; r < activity.records.size(); ++r) {
    if (attribution.range_of[r] == Attribution::none)
      continue;
    const WorkRange& range = ranges[static_cast<std::size_t>(attribution.range_of[r])];
    const GpuRecord& record = activity.records[r];
    if (plan::is_compute(range.instruction.kind))
      busy[range.rank][stream_of(record)] += seconds(record.start, record.end).value;
  }
  std::vector<StreamId> streams(static_cast<std::size_t>(ranks));
  for (const auto& [rank, by_stream] : busy) {
    const auto most =
        std::max_element(by_stream.begin(), by_stream.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    streams[static_cast<std::size_t>(rank)] = most->first;
  }
  return streams;
}

namespace {

/// Adds the gaps between two records of a rank's stream to its ranges: until the next record was
/// submitted, the device waited for the host, and after that for something else. `records` are in
/// the order of time.
void add_gaps(const Activity& activity, const Attribution& attribution,
              const std::vector<WorkRange>& ranges, const std::vector<int>& own,
              const std::vector<int>& records, std::vector<WorkTime>& times) {
  Nanoseconds free = ranges[static_cast<std::size_t>(own.front())].start;
  for (const int record : records) {
    const GpuRecord& work = record_at(activity, record);
    const Nanoseconds asked = std::max(free, asked_for(activity, attribution, record));
    if (work.start > free) {
      add_launch(ranges, own, free, asked, times);
      const int range = attribution.range_of[static_cast<std::size_t>(record)];
      times[static_cast<std::size_t>(range)].waiting += seconds(asked, work.start);
    }
    free = std::max(free, work.end);
  }
  // Time that the CPU spends after its last operator is a part of the step as well. For a GPU it is
  // not, because its host continues.
  const bool on_host =
      !records.empty() &&
      attribution.call_of[static_cast<std::size_t>(records.back())] == Attribution::none;
  if (on_host)
    add_launch(ranges, own, free, ranges[static_cast<std::size_t>(own.back())].end, times);
}

}  // namespace

std::vector<WorkTime> work_times(const Activity& activity, const Attribution& attribution,
                                 const std::vector<WorkRange>& ranges) {
  std::vector<WorkTime> times(ranges.size());
  std::vector<std::vector<Interval>> of_range(ranges.size());
  std::map<int, std::vector<int>> on_stream;  // by rank: the records of its stream
  const auto streams = compute_streams(activity, attribution, ranges);
  for (std::size_t r = 0; r < activity.records.size(); ++r) {
    if (attribution.range_of[r] == Attribution::none)
      continue;
    const auto range = static_cast<std::size_t>(attribution.range_of[r]);
    const GpuRecord& record = activity.records[r];
    of_range[range].emplace_back(record.start, record.end);
    ++times[range].count;
    const int rank = ranges[range].rank;
    if (streams[static_cast<std::size_t>(rank)] == stream_of(record))
      on_stream[rank].push_back(static_cast<int>(r));
  }
  for (std::size_t range = 0; range < ranges.size(); ++range) {
    times[range].device = covered(std::move(of_range[range]));
    times[range].host = seconds(ranges[range].start, ranges[range].end);
  }
  for (const auto& [rank, own] : ranges_by_rank(ranges)) {
    std::vector<int>& records = on_stream[rank];
    std::sort(records.begin(), records.end(), [&](int a, int b) {
      return record_at(activity, a).start < record_at(activity, b).start;
    });
    add_gaps(activity, attribution, ranges, own, records, times);
  }
  return times;
}

std::vector<plan::Seconds> own_times(const Activity& activity) {
  std::vector<plan::Seconds> times(activity.records.size());
  std::map<StreamId, std::vector<std::size_t>> by_stream;
  for (std::size_t r = 0; r < activity.records.size(); ++r)
    if (const GpuRecord& record = activity.records[r]; is_work(record.kind)) {
      times[r] = seconds(record.start, record.end);
      by_stream[stream_of(record)].push_back(r);
    }
  for (auto& [stream, records] : by_stream) {
    const auto outer_first = [&](std::size_t a, std::size_t b) {
      const GpuRecord &left = activity.records[a], &right = activity.records[b];
      return std::tie(left.start, right.end) < std::tie(right.start, left.end);
    };
    std::stable_sort(records.begin(), records.end(), outer_first);
    std::vector<std::size_t> around;
    for (const std::size_t r : records) {
      const GpuRecord& record = activity.records[r];
      while (!around.empty() && activity.records[around.back()].end < record.end)
        around.pop_back();
      if (!around.empty() && activity.records[around.back()].end > record.start)
        times[around.back()] -= seconds(record.start, record.end);
      around.push_back(r);
    }
  }
  return times;
}

}  // namespace pipewright::profiler
