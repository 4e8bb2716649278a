#include "pipewright/plan/timeline/event_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace pipewright::plan {
namespace {

/// Returns the indices of the spans, by rank, row and time.
std::vector<std::size_t> in_order(const std::vector<Span>& spans) {
  std::vector<std::size_t> order(spans.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tie(spans[a].rank, spans[a].row, spans[a].start) <
           std::tie(spans[b].rank, spans[b].row, spans[b].start);
  });
  return order;
}

/// Distributes the spans of one row over tracks, each to the first track that is free. Returns a
/// list of spans per track.
std::vector<std::vector<std::size_t>> without_overlap(const std::vector<Span>& spans,
                                                      std::span<const std::size_t> row) {
  std::vector<std::vector<std::size_t>> tracks;
  for (const std::size_t span : row) {
    const auto free = std::find_if(tracks.begin(), tracks.end(), [&](const auto& track) {
      return spans[track.back()].end <= spans[span].start;
    });
    (free == tracks.end() ? tracks.emplace_back() : *free).push_back(span);
  }
  return tracks;
}

/// Builds the columns of a Timeline's table one after the other.
class TableOfTimeline {
 public:
  explicit TableOfTimeline(const Timeline& timeline)
      : timeline_(timeline),
        table_{.name = timeline.name, .ranks = timeline.ranks, .length = timeline.length},
        columns_(std::make_shared<EventColumns>()),
        places_(timeline.spans.size()) {
    add_spans();
    for (const std::size_t span : timeline.critical)
      columns_->critical.push_back(places_[span]);
    add_idle();
    add_memory();
  }

  /// Returns the event of each span.
  const std::vector<std::uint64_t>& places() const { return places_; }
  EventTable take() {
    set_columns(table_, std::move(columns_));
    return std::move(table_);
  }

 private:
  void add_spans() {
    const std::vector<Span>& spans = timeline_.spans;
    columns_->reserve(spans.size());
    const auto order = in_order(spans);
    for (auto row = order.begin(); row != order.end();) {
      const Span& first = spans[*row];
      const auto row_end = std::find_if(row, order.end(), [&](std::size_t span) {
        return spans[span].rank != first.rank || spans[span].row != first.row;
      });
      for (const auto& track : without_overlap(spans, {row, row_end}))
        add_track(first, track);
      row = row_end;
    }
  }

  void add_track(const Span& like, const std::vector<std::size_t>& track) {
    const std::uint64_t begin = columns_->start.size();
    for (const std::size_t span : track) {
      const Span& own = timeline_.spans[span];
      places_[span] = columns_->start.size();
      columns_->start.push_back(own.start.value);
      columns_->end.push_back(own.end.value);
      const auto [at, is_new] =
          numbers_.try_emplace(own.action, static_cast<std::uint32_t>(table_.names.size()));
      if (is_new)
        table_.names.push_back(own.action);
      columns_->name_of.push_back(at->second);
    }
    table_.tracks.push_back(
        {like.rank, like.row, word_of(like.row), begin, columns_->start.size()});
  }

  void add_idle() {
    std::vector<IdleSpan> all_idle = timeline_.idle;
    std::stable_sort(all_idle.begin(), all_idle.end(), [](const auto& a, const auto& b) {
      return std::tie(a.rank, a.start) < std::tie(b.rank, b.start);
    });
    for (const IdleSpan& idle : all_idle)
      columns_->idle.push_back(
          {idle.start.value, idle.end.value, idle.rank, static_cast<std::uint32_t>(idle.cause)});
  }

  void add_memory() {
    std::vector<MemorySample> samples = timeline_.memory;
    std::stable_sort(samples.begin(), samples.end(), [](const auto& a, const auto& b) {
      return std::tie(a.rank, a.time) < std::tie(b.rank, b.time);
    });
    for (const MemorySample& sample : samples) {
      while (std::cmp_less_equal(columns_->memory_begins.size(), sample.rank))
        columns_->memory_begins.push_back(columns_->memory.size());
      columns_->memory.push_back({sample.time.value, sample.held.value});
    }
    columns_->memory_begins.resize(static_cast<std::size_t>(timeline_.ranks) + 1,
                                   columns_->memory.size());
  }

  const Timeline& timeline_;
  EventTable table_;
  std::shared_ptr<EventColumns> columns_;
  std::vector<std::uint64_t> places_;
  std::unordered_map<std::string_view, std::uint32_t> numbers_;  // of names
};

}  // namespace

void EventColumns::reserve(std::uint64_t events) {
  start.reserve(events);
  end.reserve(events);
  name_of.reserve(events);
}

void set_columns(EventTable& table, std::shared_ptr<const EventColumns> columns) {
  table.start = columns->start;
  table.end = columns->end;
  table.name_of = columns->name_of;
  table.critical = columns->critical;
  table.idle = columns->idle;
  table.memory = columns->memory;
  table.memory_begins = columns->memory_begins;
  table.storage = std::move(columns);
}

EventTable table_of(const Timeline& timeline, std::vector<std::uint64_t>* places) {
  TableOfTimeline made(timeline);
  if (places != nullptr)
    *places = made.places();
  return made.take();
}

namespace {

/// Restores the spans' waits for tensor-parallel ranks from the idle time, since a table has no
/// column for them.
void mark_waits(Timeline& timeline) {
  std::map<std::pair<int, Seconds>, Seconds> waits;  // by rank and end
  for (const IdleSpan& idle : timeline.idle)
    if (idle.cause == IdleCause::Shards)
      waits[{idle.rank, idle.end}] = idle.end - idle.start;
  for (Span& span : timeline.spans)
    if (const auto wait = waits.find({span.rank, span.end});
        wait != waits.end() && span.row == Row::Compute) {
      span.shards = span.late = std::min(wait->second, span.end - span.start);
      waits.erase(wait);
    }
}

}  // namespace

Timeline timeline_of(const EventTable& table) {
  Timeline timeline{
      .name = table.name, .ranks = table.ranks, .length = table.length, .spans = {}, .memory = {}};
  timeline.spans.reserve(table.size());
  for (const EventTrack& track : table.tracks)
    for (std::uint64_t event = track.begin; event < track.end; ++event)
      timeline.spans.push_back(
          {track.rank, track.row, table.name_at(event), {table.start[event]}, {table.end[event]}});
  for (int rank = 0; rank < table.ranks && !table.memory.empty(); ++rank)
    for (std::uint64_t sample = table.memory_begins[static_cast<std::size_t>(rank)];
         sample < table.memory_begins[static_cast<std::size_t>(rank) + 1]; ++sample)
      timeline.memory.push_back({rank, {table.memory[sample].time}, {table.memory[sample].bytes}});
  for (const EventTable::Idle& idle : table.idle)
    timeline.idle.push_back(
        {idle.rank, static_cast<IdleCause>(idle.cause), {idle.start}, {idle.end}});
  timeline.critical.assign(table.critical.begin(), table.critical.end());
  mark_waits(timeline);
  return timeline;
}

std::string rank_name(const EventTable& table, int rank) {
  const auto at = static_cast<std::size_t>(rank);
  return at < table.rank_names.size() ? table.rank_names[at] : fmt::format("rank {}", rank);
}

}  // namespace pipewright::plan
