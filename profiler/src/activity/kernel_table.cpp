#include "pipewright/profiler/activity/kernel_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace pipewright::profiler {
namespace {

struct Bar {
  std::string text;
  Nanoseconds start = 0;
  Nanoseconds end = 0;
  int level = 0;  // order of equal bars: lower levels lie around higher ones
};
using Bars = std::vector<Bar>;

/// Distributes nested bars to levels. Bars that overlap without being nested go to `left_over`.
std::vector<Bars> nested(Bars bars, Bars& left_over) {
  std::stable_sort(bars.begin(), bars.end(), [](const Bar& a, const Bar& b) {
    return std::tie(a.start, b.end, a.level) < std::tie(b.start, a.end, b.level);
  });
  std::vector<Bars> levels;
  std::vector<Nanoseconds> around;  // ends of the enclosing bars
  for (Bar& bar : bars) {
    while (!around.empty() && around.back() <= bar.start)
      around.pop_back();
    const std::size_t depth = around.size();
    const bool inside = around.empty() || bar.end <= around.back();
    const bool free =
        depth >= levels.size() || levels[depth].empty() || levels[depth].back().end <= bar.start;
    if (!inside || !free) {
      left_over.push_back(std::move(bar));
      continue;
    }
    levels.resize(std::max(levels.size(), depth + 1));
    around.push_back(bar.end);
    levels[depth].push_back(std::move(bar));
  }
  return levels;
}

class TableWriter {
 public:
  explicit TableWriter(Nanoseconds origin)
      : origin_(origin), columns_(std::make_shared<plan::EventColumns>()) {}

  /// Adds one track for each level of nesting, and more tracks for bars that overlap.
  void add(int rank, plan::Row row, const std::string& name, Bars bars) {
    while (!bars.empty()) {
      Bars left_over;
      const auto levels = nested(std::move(bars), left_over);
      for (std::size_t depth = 0; depth < levels.size(); ++depth)
        add_track(rank, row, depth == 0 ? name : name + " inside", static_cast<int>(depth),
                  levels[depth]);
      bars = std::move(left_over);
    }
  }

  plan::EventTable finish(const std::string& name, int ranks) {
    table_.name = name;
    table_.ranks = ranks;
    columns_->memory_begins.assign(static_cast<std::size_t>(ranks) + 1, 0);
    plan::set_columns(table_, columns_);
    return std::move(table_);
  }

 private:
  void add_track(int rank, plan::Row row, const std::string& name, int depth, const Bars& bars) {
    const std::uint64_t begin = columns_->start.size();
    for (const Bar& bar : bars) {
      columns_->start.push_back(seconds(bar.start));
      columns_->end.push_back(seconds(bar.end));
      table_.length = std::max(table_.length, plan::Seconds{columns_->end.back()});
      const auto [at, is_new] =
          numbers_.try_emplace(bar.text, static_cast<std::uint32_t>(table_.names.size()));
      if (is_new)
        table_.names.push_back(bar.text);
      columns_->name_of.push_back(at->second);
    }
    table_.tracks.push_back({rank, row, name, begin, columns_->start.size(), depth});
  }

  double seconds(Nanoseconds instant) const {
    return instant > origin_ ? static_cast<double>(instant - origin_) * 1e-9 : 0;
  }

  Nanoseconds origin_;
  std::shared_ptr<plan::EventColumns> columns_;
  plan::EventTable table_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

/// The time from the first to the last record of a range.
struct Extent {
  Nanoseconds start = std::numeric_limits<Nanoseconds>::max();
  Nanoseconds end = 0;
  void add(const GpuRecord& record) {
    start = std::min(start, record.start);
    end = std::max(end, record.end);
  }
};

/// The bars of one rank.
struct RankBars {
  std::map<plan::Row, Bars> actions;
  std::map<StreamId, Bars> streams;    // except its compute stream
  std::map<StreamId, Bars> unclaimed;  // of no rank; shown for the first rank
  Bars host;
};

constexpr int action_level = 0, layer_level = 1, kernel_level = 2;

std::string track_of(plan::Row row) {
  return row == plan::Row::Compute ? "pipeline" : fmt::format("pipeline {}", plan::word_of(row));
}

std::size_t contexts_of(const Activity& activity) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> contexts;
  for (const GpuRecord& record : activity.records)
    if (is_work(record.kind))
      contexts.insert({record.device, record.context});
  return contexts.size();
}

/// Returns a stream's name. With several contexts, its number alone is ambiguous.
std::string word_of(const StreamId& stream, std::size_t contexts) {
  return contexts < 2 ? fmt::format("stream {}", stream.stream)
                      : fmt::format("stream {} of context {}", stream.stream, stream.context);
}

/// Returns true if two ranges are consecutive parts of one action.
bool same_action(const WorkRange& a, const WorkRange& b) {
  return a.rank == b.rank && a.instruction == b.instruction;
}

Nanoseconds earliest(const RecordedPass& pass) {
  Nanoseconds first = std::numeric_limits<Nanoseconds>::max();
  for (const WorkRange& range : pass.ranges)
    first = std::min(first, range.start);
  for (const GpuRecord& record : pass.activity.records)
    if (is_work(record.kind) && record.end > 0)
      first = std::min(first, record.start);
  return first;
}

/// Returns the extent of each range's work on the device.
std::vector<Extent> extents(const RecordedPass& pass, const Attribution& attribution) {
  std::vector<Extent> found(pass.ranges.size());
  for (std::size_t r = 0; r < pass.activity.records.size(); ++r)
    if (attribution.range_of[r] != Attribution::none)
      found[static_cast<std::size_t>(attribution.range_of[r])].add(pass.activity.records[r]);
  return found;
}

void add_ranges(const RecordedPass& pass, const std::vector<Extent>& extent,
                const std::function<std::string(int)>& layer_name, std::vector<RankBars>& ranks) {
  for (std::size_t range = 0; range < pass.ranges.size(); ++range) {
    const WorkRange& own = pass.ranges[range];
    RankBars& rank = ranks[static_cast<std::size_t>(own.rank)];
    const std::string text = plan::to_string(own.instruction);
    const bool continues = range > 0 && same_action(pass.ranges[range - 1], own);
    if (continues && !rank.host.empty())
      rank.host.back().end = own.end;
    else
      rank.host.push_back({text, own.start, own.end, action_level});
    if (extent[range].end == 0)
      continue;
    Bars& bars = rank.actions[plan::row_of(own.instruction.kind)];
    const auto before = std::find_if(bars.rbegin(), bars.rend(),
                                     [](const Bar& bar) { return bar.level == action_level; });
    if (continues && before != bars.rend() && before->text == text) {
      before->start = std::min(before->start, extent[range].start);
      before->end = std::max(before->end, extent[range].end);
    } else {
      bars.push_back({text, extent[range].start, extent[range].end, action_level});
    }
    if (own.layer >= 0)
      bars.push_back({layer_name(own.layer), extent[range].start, extent[range].end, layer_level});
  }
}

void add_records(const RecordedPass& pass, const Attribution& attribution,
                 std::vector<RankBars>& ranks) {
  const auto streams = compute_streams(pass.activity, attribution, pass.ranges);
  for (std::size_t r = 0; r < pass.activity.records.size(); ++r) {
    const GpuRecord& record = pass.activity.records[r];
    if (!is_work(record.kind) || record.end == 0 || record.end < record.start)
      continue;
    const Bar bar{pass.activity.names.at(record.name), record.start, record.end, kernel_level};
    const int range = attribution.range_of[r];
    if (range == Attribution::none) {
      ranks.front().unclaimed[stream_of(record)].push_back(bar);
      continue;
    }
    const WorkRange& own = pass.ranges[static_cast<std::size_t>(range)];
    RankBars& rank = ranks[static_cast<std::size_t>(own.rank)];
    const plan::Row row = plan::row_of(own.instruction.kind);
    const bool on_own_stream = streams[static_cast<std::size_t>(own.rank)] == stream_of(record);
    if (on_own_stream || row != plan::Row::Compute)
      rank.actions[row].push_back(bar);
    else
      rank.streams[stream_of(record)].push_back(bar);
  }
}

}  // namespace

plan::EventTable kernel_table(const RecordedPass& pass,
                              const std::function<std::string(int layer)>& layer_name) {
  const Attribution attribution = attribute(pass.activity, pass.ranges);
  int count = 1;
  for (const WorkRange& range : pass.ranges)
    count = std::max(count, range.rank + 1);
  std::vector<RankBars> ranks(static_cast<std::size_t>(count));
  add_ranges(pass, extents(pass, attribution), layer_name, ranks);
  add_records(pass, attribution, ranks);

  const std::size_t contexts = contexts_of(pass.activity);
  TableWriter table(earliest(pass));
  for (int rank = 0; rank < count; ++rank) {
    RankBars& own = ranks[static_cast<std::size_t>(rank)];
    // Tracks must be in the order of rows.
    table.add(rank, plan::Row::Compute, track_of(plan::Row::Compute),
              std::move(own.actions[plan::Row::Compute]));
    for (auto& [stream, bars] : own.streams)
      table.add(rank, plan::Row::Compute, word_of(stream, contexts), std::move(bars));
    for (auto& [stream, bars] : own.unclaimed)
      table.add(rank, plan::Row::Compute, "unclaimed on " + word_of(stream, contexts),
                std::move(bars));
    table.add(rank, plan::Row::Compute, "host", std::move(own.host));
    for (auto& [row, bars] : own.actions)
      if (row != plan::Row::Compute)
        table.add(rank, row, track_of(row), std::move(bars));
  }
  return table.finish("kernels", count);
}

}  // namespace pipewright::profiler
