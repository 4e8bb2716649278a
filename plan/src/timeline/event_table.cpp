#include "pipewright/plan/timeline/event_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace pipewright::plan {
namespace {

/// The spans by rank, row and time.
std::vector<std::size_t> in_order(const std::vector<Span>& spans) {
  std::vector<std::size_t> order(spans.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tie(spans[a].rank, spans[a].row, spans[a].start) <
           std::tie(spans[b].rank, spans[b].row, spans[b].start);
  });
  return order;
}

/// Deals the spans of one row out to tracks, each to the first that is free; returns a list of
/// spans per track.
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
  const std::vector<Span>& spans = timeline.spans;
  auto columns = std::make_shared<EventColumns>();
  columns->reserve(spans.size());
  EventTable table{.name = timeline.name, .ranks = timeline.ranks, .length = timeline.length};

  std::unordered_map<std::string_view, std::uint32_t> numbers;
  std::vector<std::uint64_t> place(spans.size());
  const auto order = in_order(spans);
  for (auto row = order.begin(); row != order.end();) {
    const Span& first = spans[*row];
    const auto row_end = std::find_if(row, order.end(), [&](std::size_t span) {
      return spans[span].rank != first.rank || spans[span].row != first.row;
    });
    for (const auto& track : without_overlap(spans, {row, row_end})) {
      const std::uint64_t begin = columns->start.size();
      for (const std::size_t span : track) {
        place[span] = columns->start.size();
        columns->start.push_back(spans[span].start.value);
        columns->end.push_back(spans[span].end.value);
        const auto [at, is_new] =
            numbers.try_emplace(spans[span].action, static_cast<std::uint32_t>(table.names.size()));
        if (is_new)
          table.names.push_back(spans[span].action);
        columns->name_of.push_back(at->second);
      }
      table.tracks.push_back(
          {first.rank, first.row, word_of(first.row), begin, columns->start.size()});
    }
    row = row_end;
  }

  for (const std::size_t span : timeline.critical)
    columns->critical.push_back(place[span]);
  std::vector<IdleSpan> all_idle = timeline.idle;
  std::stable_sort(all_idle.begin(), all_idle.end(), [](const auto& a, const auto& b) {
    return std::tie(a.rank, a.start) < std::tie(b.rank, b.start);
  });
  for (const IdleSpan& idle : all_idle)
    columns->idle.push_back(
        {idle.start.value, idle.end.value, idle.rank, static_cast<std::uint32_t>(idle.cause)});
  std::vector<MemorySample> samples = timeline.memory;
  std::stable_sort(samples.begin(), samples.end(), [](const auto& a, const auto& b) {
    return std::tie(a.rank, a.time) < std::tie(b.rank, b.time);
  });
  for (const MemorySample& sample : samples) {
    while (std::cmp_less_equal(columns->memory_begins.size(), sample.rank))
      columns->memory_begins.push_back(columns->memory.size());
    columns->memory.push_back({sample.time.value, sample.held.value});
  }
  columns->memory_begins.resize(static_cast<std::size_t>(timeline.ranks) + 1,
                                columns->memory.size());

  set_columns(table, std::move(columns));
  if (places != nullptr)
    *places = std::move(place);
  return table;
}

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
  return timeline;
}

std::string rank_name(const EventTable& table, int rank) {
  const auto at = static_cast<std::size_t>(rank);
  return at < table.rank_names.size() ? table.rank_names[at] : fmt::format("rank {}", rank);
}

}  // namespace pipewright::plan
