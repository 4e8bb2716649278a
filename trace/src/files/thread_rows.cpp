#include "pipewright/trace/files/thread_rows.hpp"

#include <algorithm>

#include "pipewright/plan/timeline/timeline_facts.hpp"
#include "pipewright/trace/chrome/chrome_trace.hpp"

namespace pipewright::trace {
namespace {

struct ThreadRow {
  std::string name;
  int rank = 0;                       // in the original table
  std::vector<std::size_t> tracks{};  // in order
};

std::vector<ThreadRow> rows_of(const plan::EventTable& table) {
  std::vector<ThreadRow> pipelines, threads;
  for (std::size_t at = 0; at < table.tracks.size(); ++at) {
    const plan::EventTrack& track = table.tracks[at];
    const std::string rank = plan::rank_name(table, track.rank);
    if (is_pipeline_track(track.name)) {
      if (pipelines.empty() || pipelines.back().rank != track.rank)
        pipelines.push_back({rank, track.rank});
      pipelines.back().tracks.push_back(at);
    } else {
      if (track.depth == 0 || threads.empty())
        threads.push_back({table.ranks > 1 ? rank + ", " + track.name : track.name, track.rank});
      threads.back().tracks.push_back(at);
    }
  }
  pipelines.insert(pipelines.end(), threads.begin(), threads.end());
  return pipelines;
}

/// Shows the memory of a rank in the first of its rows.
void place_memory(const plan::EventTable& from, const std::vector<ThreadRow>& rows,
                  plan::EventColumns& columns) {
  std::vector<bool> placed(static_cast<std::size_t>(from.ranks));
  for (const ThreadRow& row : rows) {
    columns.memory_begins.push_back(columns.memory.size());
    const auto rank = static_cast<std::size_t>(row.rank);
    if (placed[rank] || from.memory.empty())
      continue;
    placed[rank] = true;
    const auto samples = from.memory.subspan(
        from.memory_begins[rank], from.memory_begins[rank + 1] - from.memory_begins[rank]);
    columns.memory.insert(columns.memory.end(), samples.begin(), samples.end());
  }
  columns.memory_begins.push_back(columns.memory.size());
}

/// Returns the table's tracks in the order of the rows, each with its row as its rank.
std::vector<plan::EventTrack> tracks_by_row(const plan::EventTable& table,
                                            const std::vector<ThreadRow>& rows) {
  std::vector<plan::EventTrack> tracks;
  for (std::size_t row = 0; row < rows.size(); ++row)
    for (const std::size_t at : rows[row].tracks) {
      tracks.push_back(table.tracks[at]);
      tracks.back().rank = static_cast<int>(row);
    }
  return tracks;
}

/// Copies the events in the order of these tracks, and updates the ranges of the tracks.
void place_events(const plan::EventTable& from, std::vector<plan::EventTrack>& tracks,
                  plan::EventColumns& columns) {
  columns.reserve(from.size());
  for (plan::EventTrack& track : tracks) {
    const std::uint64_t first = track.begin, count = track.end - track.begin;
    const auto append = [&](auto& column, const auto& whole) {
      const auto part = whole.subspan(first, count);
      column.insert(column.end(), part.begin(), part.end());
    };
    track.begin = columns.start.size();
    track.end = track.begin + count;
    append(columns.start, from.start);
    append(columns.end, from.end);
    append(columns.name_of, from.name_of);
  }
}

/// Columns of a table that shares the events of another table.
struct SharedColumns {
  std::shared_ptr<const void> events;
  plan::EventColumns own;
};

}  // namespace

plan::EventTable with_thread_rows(plan::EventTable table) {
  if (plan::facts_of(table).is_iteration)
    return table;
  const std::vector<ThreadRow> rows = rows_of(table);
  plan::EventTable by_row = table;
  by_row.ranks = static_cast<int>(rows.size());
  by_row.rank_names.clear();
  for (const ThreadRow& row : rows)
    by_row.rank_names.push_back(row.name);
  by_row.tracks = tracks_by_row(table, rows);

  auto columns = std::make_shared<SharedColumns>(SharedColumns{table.storage, {}});
  place_memory(table, rows, columns->own);
  by_row.memory = columns->own.memory;
  by_row.memory_begins = columns->own.memory_begins;
  const bool in_order =
      std::is_sorted(by_row.tracks.begin(), by_row.tracks.end(),
                     [](const auto& a, const auto& b) { return a.begin < b.begin; });
  if (!in_order) {
    place_events(table, by_row.tracks, columns->own);
    by_row.start = columns->own.start;
    by_row.end = columns->own.end;
    by_row.name_of = columns->own.name_of;
    columns->events.reset();
  }
  by_row.storage = std::move(columns);
  return by_row;
}

}  // namespace pipewright::trace
