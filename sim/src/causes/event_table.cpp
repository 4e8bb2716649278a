#include "pipewright/sim/causes/event_table.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace pipewright::sim {

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
  number_names();
  make_rows();
}

/// Numbers the names where they first occur: making a name for each event and looking it up takes
/// ten times as long.
void EventTableMaker::number_names() {
  const plan::Dependencies& events = structure_.events();
  const auto stages = static_cast<std::size_t>(plan::stage_count(structure_.program()));
  const auto microbatches = static_cast<std::size_t>(structure_.program().microbatches);
  constexpr std::uint32_t unknown = ~std::uint32_t{0};
  std::vector<std::uint32_t> number_of(plan::kinds_with_microbatch * stages * microbatches,
                                       unknown);
  std::map<plan::InstructionKey, std::uint32_t> others;  // whole stages have few of them
  for (int event = 0; event < structure_.size(); ++event) {
    const plan::Instruction& i = *events[event].instruction;
    const std::size_t at =
        (static_cast<std::size_t>(i.kind) * stages + static_cast<std::size_t>(i.stage)) *
            microbatches +
        static_cast<std::size_t>(std::max(0, i.microbatch));
    std::uint32_t& number = plan::has_microbatch(i.kind)
                                ? number_of[at]
                                : others.try_emplace(key_of(i), unknown).first->second;
    if (number == unknown) {
      number = static_cast<std::uint32_t>(names_.size());
      names_.push_back(to_string(i));
      kinds_.push_back(i.kind);
    }
    name_of_[static_cast<std::size_t>(event)] = number;
  }
}

/// Groups the events by rank and row. Events are numbered rank by rank.
void EventTableMaker::make_rows() {
  const plan::Dependencies& events = structure_.events();
  constexpr std::size_t row_count = static_cast<std::size_t>(plan::Row::Reduce) + 1;
  std::array<std::vector<int>, row_count> rows;
  std::size_t at = 0;
  for (int event = 0; event < structure_.size();) {
    const int rank = events[event].rank;
    for (; event < structure_.size() && events[event].rank == rank; ++event)
      rows[static_cast<std::size_t>(plan::row_of(events[event].instruction->kind))].push_back(
          event);
    for (std::size_t row = 0; row < row_count; ++row) {
      const std::size_t begin = at;
      for (const int own : rows[row])
        row_events_[at++] = own;
      if (at > begin)
        rows_.push_back({rank, static_cast<plan::Row>(row), begin, at});
      rows[row].clear();
    }
  }
}

plan::EventTable EventTableMaker::table_of(const Times& times, const EventTableParts& parts) {
  const auto ranks = static_cast<int>(structure_.program().ranks.size());
  auto columns = std::make_shared<plan::EventColumns>();
  columns->reserve(places_.size());
  plan::EventTable table{.name = "predicted", .ranks = ranks, .length = {times.iteration}};
  table.names = names_;
  table.kinds = kinds_;
  for (const RowOfRank& row : rows_)
    fill_row(row, times, *columns, table.tracks);

  for (const int event : parts.critical)
    columns->critical.push_back(places_[static_cast<std::size_t>(event)]);
  if (parts.idle != nullptr)
    copy_idle(*parts.idle, columns->idle);
  if (parts.memory != nullptr)
    copy_memory(*parts.memory, columns->memory, columns->memory_begins);
  columns->memory_begins.resize(static_cast<std::size_t>(ranks) + 1, columns->memory.size());

  plan::set_columns(table, std::move(columns));
  return table;
}

/// Distributes the row's events over tracks in order of time, each to the first free track. Most
/// rows are already in that order and need one track.
void EventTableMaker::fill_row(const RowOfRank& row, const Times& times,
                               plan::EventColumns& columns, std::vector<plan::EventTrack>& tracks) {
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
