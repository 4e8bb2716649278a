#include "pipewright/profiler/activity/attribution.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

namespace pipewright::profiler {
namespace {

/// The ranges of each rank in the order of time, for finding the range at an instant.
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

  /// Returns the range at an instant if exactly one rank has one.
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

/// Finds labels by call, calls by number, and ranges by label.
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

/// Returns for each stream the rank with most labeled work on it.
std::map<StreamId, int> owners(const Activity& activity, const std::vector<WorkRange>& ranges,
                               const std::vector<int>& range_of) {
  std::map<StreamId, std::map<int, int>> counts;
  for (std::size_t r = 0; r < activity.records.size(); ++r)
    if (range_of[r] != Attribution::none)
      ++counts[stream_of(activity.records[r])][ranges[static_cast<std::size_t>(range_of[r])].rank];
  std::map<StreamId, int> owner;
  for (const auto& [stream, by_rank] : counts)
    owner[stream] =
        std::max_element(by_rank.begin(), by_rank.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;
        })->first;
  return owner;
}

/// Returns true if a record is work whose times are known.
bool is_timed_work(const GpuRecord& record) {
  return is_work(record.kind) && record.end > 0 && record.end >= record.start;
}

/// Attributes work without a label to the range that its stream's owner had at the time of the
/// call.
void claim_by_stream(const Activity& activity, const std::vector<WorkRange>& ranges,
                     Attribution& result) {
  const Agenda agenda(ranges);
  const auto owner = owners(activity, ranges, result.range_of);
  for (std::size_t r = 0; r < activity.records.size(); ++r) {
    const auto& record = activity.records[r];
    const int call = result.call_of[r];
    if (!is_timed_work(record) || result.range_of[r] != Attribution::none ||
        call == Attribution::none)
      continue;
    const Nanoseconds asked = activity.records[static_cast<std::size_t>(call)].start;
    const auto found = owner.find(stream_of(record));
    result.range_of[r] =
        found == owner.end() ? agenda.the_only_one(asked) : agenda.at_work(found->second, asked);
  }
}

}  // namespace

Attribution attribute(const Activity& activity, const std::vector<WorkRange>& ranges) {
  const Index index(activity, ranges);
  const auto& records = activity.records;
  Attribution result;
  result.range_of.assign(records.size(), Attribution::none);
  result.call_of.assign(records.size(), Attribution::none);
  for (std::size_t r = 0; r < records.size(); ++r) {
    if (!is_timed_work(records[r])) {
      result.without_times += is_work(records[r].kind) ? 1 : 0;
      continue;
    }
    result.call_of[r] = index.call(records[r]);
    result.range_of[r] = index.range(records[r]);
  }
  claim_by_stream(activity, ranges, result);
  for (std::size_t r = 0; r < records.size(); ++r) {
    if (!is_timed_work(records[r]))
      continue;
    result.without_call +=
        result.call_of[r] == Attribution::none && records[r].correlation != 0 ? 1 : 0;
    result.unclaimed += result.range_of[r] == Attribution::none ? 1 : 0;
  }
  return result;
}

}  // namespace pipewright::profiler
