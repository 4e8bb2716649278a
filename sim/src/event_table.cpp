#include "pipewright/sim/event_table.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace pipewright::sim {

/// What a table's columns are views of.
struct EventTableMaker::Columns {
  std::vector<double> start, end;
  std::vector<std::uint32_t> name_of;
  std::vector<std::uint64_t> critical, memory_begins;
  std::vector<plan::EventTable::Idle> idle;
  std::vector<plan::EventTable::Memory> memory;
};

namespace {

void copy_idle(const IdleTime& idle, std::vector<plan::EventTable::Idle>& column) {
  column.reserve(idle.spans.size());
  for (const plan::IdleSpan& span : idle.spans)
    column.push_back(
        {span.start.value, span.end.value, span.rank, static_cast<std::uint32_t>(span.cause)});
}

void copy_memory(const MemoryCurves& curves, std::vector<plan::EventTable::Memory>& column,
                 std::vector<std::uint64_t>& begins) {
  column.reserve(curves.points.size());
  for (int rank = 0; rank < static_cast<int>(curves.begins.size()); ++rank) {
    begins.push_back(column.size());
    for (const MemoryPoint& point : curves.of(rank))
      column.push_back({point.time, point.held});
  }
}

}  // namespace

EventTableMaker::EventTableMaker(const Structure& structure)
    : structure_(structure),
      name_of_(static_cast<std::size_t>(structure.size())),
      row_events_(static_cast<std::size_t>(structure.size())),
      places_(static_cast<std::size_t>(structure.size())) {
  const plan::Dependencies& events = structure.events();
  std::unordered_map<std::string, std::uint32_t> numbers;
  for (int event = 0; event < structure.size(); ++event) {
    const auto [at, is_new] = numbers.try_emplace(to_string(*events[event].instruction),
                                                  static_cast<std::uint32_t>(names_.size()));
    if (is_new)
      names_.push_back(at->first);
    name_of_[static_cast<std::size_t>(event)] = at->second;
  }
  const auto place = [&](int event) {
    return std::pair(events[event].rank, plan::row_of(events[event].instruction->kind));
  };
  std::iota(row_events_.begin(), row_events_.end(), 0);
  std::stable_sort(row_events_.begin(), row_events_.end(),
                   [&](int a, int b) { return place(a) < place(b); });
  for (std::size_t at = 0; at < row_events_.size(); ++at) {
    const auto [rank, row] = place(row_events_[at]);
    if (rows_.empty() || rows_.back().rank != rank || rows_.back().row != row)
      rows_.push_back({rank, row, at, at});
    rows_.back().end = at + 1;
  }
}

plan::EventTable EventTableMaker::table_of(const Times& times, const EventTableParts& parts) {
  const auto ranks = static_cast<int>(structure_.program().ranks.size());
  auto columns = std::make_shared<Columns>();
  columns->start.reserve(places_.size());
  columns->end.reserve(places_.size());
  columns->name_of.reserve(places_.size());
  plan::EventTable table{.name = "predicted", .ranks = ranks, .length = {times.iteration}};
  table.names = names_;
  for (const RowOfRank& row : rows_)
    fill_row(row, times, *columns, table.tracks);

  for (const int event : parts.critical)
    columns->critical.push_back(places_[static_cast<std::size_t>(event)]);
  if (parts.idle != nullptr)
    copy_idle(*parts.idle, columns->idle);
  if (parts.memory != nullptr)
    copy_memory(*parts.memory, columns->memory, columns->memory_begins);
  columns->memory_begins.resize(static_cast<std::size_t>(ranks) + 1, columns->memory.size());

  table.start = columns->start;
  table.end = columns->end;
  table.name_of = columns->name_of;
  table.critical = columns->critical;
  table.idle = columns->idle;
  table.memory = columns->memory;
  table.memory_begins = columns->memory_begins;
  table.storage = std::move(columns);
  return table;
}

/// Deals the row's events out to tracks in order of time, each to the first that is free. Most rows
/// are in that order already and need one track.
void EventTableMaker::fill_row(const RowOfRank& row, const Times& times, Columns& columns,
                               std::vector<plan::EventTrack>& tracks) {
  const auto begin = row_events_.begin() + static_cast<std::ptrdiff_t>(row.begin);
  const auto end = row_events_.begin() + static_cast<std::ptrdiff_t>(row.end);
  sorted_.assign(begin, end);
  const auto earlier = [&](int a, int b) { return times[a].start < times[b].start; };
  if (!std::is_sorted(sorted_.begin(), sorted_.end(), earlier))
    std::stable_sort(sorted_.begin(), sorted_.end(), earlier);

  const auto add_track = [&](const std::vector<int>& events) {
    const std::uint64_t first = columns.start.size();
    for (const int event : events) {
      places_[static_cast<std::size_t>(event)] = columns.start.size();
      columns.start.push_back(times[event].start);
      columns.end.push_back(times[event].end);
      columns.name_of.push_back(name_of_[static_cast<std::size_t>(event)]);
    }
    tracks.push_back(
        {row.rank, row.row, std::string(plan::word_of(row.row)), first, columns.start.size()});
  };
  while (!sorted_.empty()) {
    dealt_.clear();
    left_.clear();
    double busy_until = times[sorted_.front()].start;
    for (const int event : sorted_)
      if (times[event].start >= busy_until) {
        dealt_.push_back(event);
        busy_until = times[event].end;
      } else {
        left_.push_back(event);
      }
    add_track(dealt_);
    std::swap(sorted_, left_);
  }
}

}  // namespace pipewright::sim
