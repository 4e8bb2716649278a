#include "pipewright/profiler/activity/attribution.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

namespace pipewright::profiler {
namespace {

/// The ranges of each rank in the order of time, to be asked what a rank was at.
class Agenda {
 public:
  explicit Agenda(const std::vector<WorkRange>& ranges) : ranges_(ranges) {
    for (std::size_t range = 0; range < ranges.size(); ++range)
      of_rank_[ranges[range].rank].push_back(static_cast<int>(range));
    for (auto& [rank, own] : of_rank_)
      std::sort(own.begin(), own.end(), [&](int a, int b) { return at(a).start < at(b).start; });
  }

  int at_work(int rank, Nanoseconds instant) const {
    const std::vector<int>& own = of_rank_.at(rank);
    const auto after =
        std::upper_bound(own.begin(), own.end(), instant,
                         [&](Nanoseconds when, int range) { return when < at(range).start; });
    if (after == own.begin() || at(*(after - 1)).end < instant)
      return Attribution::none;
    return *(after - 1);
  }

  /// Where one rank alone was at work, its range.
  int the_only_one(Nanoseconds instant) const {
    int found = Attribution::none;
    for (const auto& [rank, own] : of_rank_) {
      const int range = at_work(rank, instant);
      if (range == Attribution::none)
        continue;
      if (found != Attribution::none)
        return Attribution::none;
      found = range;
    }
    return found;
  }

 private:
  const WorkRange& at(int range) const { return ranges_[static_cast<std::size_t>(range)]; }

  const std::vector<WorkRange>& ranges_;
  std::map<int, std::vector<int>> of_rank_;
};

using Stream = std::pair<std::uint32_t, std::uint32_t>;  // of a device
Stream stream_of(const GpuRecord& record) { return {record.device, record.stream}; }

/// Labels by call, calls by their number, ranges by their label.
struct Index {
  Index(const Activity& activity, const std::vector<WorkRange>& ranges) {
    for (std::size_t r = 0; r < activity.records.size(); ++r) {
      const GpuRecord& record = activity.records[r];
      if (record.kind == RecordKind::Call)
        calls.emplace(record.correlation, static_cast<int>(r));
      if (record.kind == RecordKind::Label)
        labels.emplace(record.correlation, record.label);
    }
    for (std::size_t range = 0; range < ranges.size(); ++range)
      range_with.emplace(ranges[range].label, static_cast<int>(range));
  }

  int call(const GpuRecord& work) const {
    const auto found = calls.find(work.correlation);
    return work.correlation == 0 || found == calls.end() ? Attribution::none : found->second;
  }
  int range(const GpuRecord& work) const {
    std::uint64_t label = work.label;
    if (const auto told = labels.find(work.correlation);
        label == 0 && work.correlation != 0 && told != labels.end())
      label = told->second;
    const auto found = range_with.find(label);
    return found == range_with.end() ? Attribution::none : found->second;
  }

  std::unordered_map<std::uint32_t, int> calls;
  std::unordered_map<std::uint32_t, std::uint64_t> labels;
  std::unordered_map<std::uint64_t, int> range_with;
};

/// Whose labelled work ran on each stream; of several ranks the one with most of it.
std::map<Stream, int> owners(const Activity& activity, const std::vector<WorkRange>& ranges,
                             const std::vector<int>& range_of) {
  std::map<Stream, std::map<int, int>> counts;
  for (std::size_t r = 0; r < activity.records.size(); ++r)
    if (range_of[r] != Attribution::none)
      ++counts[stream_of(activity.records[r])][ranges[static_cast<std::size_t>(range_of[r])].rank];
  std::map<Stream, int> owner;
  for (const auto& [stream, by_rank] : counts)
    owner[stream] =
        std::max_element(by_rank.begin(), by_rank.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;
        })->first;
  return owner;
}

}  // namespace

Attribution attribute(const Activity& activity, const std::vector<WorkRange>& ranges) {
  const Index index(activity, ranges);
  const Agenda agenda(ranges);
  const auto& records = activity.records;
  Attribution result;
  result.range_of.assign(records.size(), Attribution::none);
  result.call_of.assign(records.size(), Attribution::none);
  const auto counts = [&](std::size_t r) {
    return is_work(records[r].kind) && records[r].end > 0 && records[r].end >= records[r].start;
  };
  for (std::size_t r = 0; r < records.size(); ++r) {
    if (!counts(r)) {
      result.without_times += is_work(records[r].kind) ? 1 : 0;
      continue;
    }
    result.call_of[r] = index.call(records[r]);
    result.range_of[r] = index.range(records[r]);
  }
  const auto owner = owners(activity, ranges, result.range_of);
  for (std::size_t r = 0; r < records.size(); ++r) {
    if (!counts(r))
      continue;
    int& range = result.range_of[r];
    const int call = result.call_of[r];
    if (call == Attribution::none && records[r].correlation != 0)
      ++result.without_call;
    if (range == Attribution::none && call != Attribution::none) {
      const Nanoseconds asked = records[static_cast<std::size_t>(call)].start;
      const auto found = owner.find(stream_of(records[r]));
      range =
          found == owner.end() ? agenda.the_only_one(asked) : agenda.at_work(found->second, asked);
    }
    if (range == Attribution::none)
      ++result.unclaimed;
  }
  return result;
}

}  // namespace pipewright::profiler
