#pragma once

// A Timeline by the million: columns instead of objects, which a file can be mapped to as they are
// (event_file.hpp) and a window can paint without copying them.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::plan {

/// Events of one rank that do not overlap, in order of time.
struct EventTrack {
  int rank = 0;
  Row row = Row::Compute;
  std::string name{};       // "compute", "send"; of a foreign trace, what it calls the thread
  std::uint64_t begin = 0;  // its events are [begin, end)
  std::uint64_t end = 0;
  int depth = 0;  // events around each of its own, of the track before it: calls inside calls
  friend bool operator==(const EventTrack&, const EventTrack&) = default;
};

/// The columns are views of `storage`, which copies of the table share.
struct EventTable {
  std::string name;  // such as "predicted"
  int ranks = 0;
  Seconds length;
  std::vector<std::string> names{};       // of events, each once
  std::vector<InstructionKind> kinds{};   // by name, where all are instructions; empty: not known
  std::vector<std::string> rank_names{};  // of a foreign trace; empty: "rank 0", "rank 1", …
  std::vector<EventTrack> tracks{};       // by rank, then by row

  std::span<const double> start{};            // in seconds, by event
  std::span<const double> end{};              //
  std::span<const std::uint32_t> name_of{};   // into `names`, by event
  std::span<const std::uint64_t> critical{};  // events on the critical path, in order of time

  struct Idle {
    double start = 0;  // seconds
    double end = 0;
    std::int32_t rank = 0;
    std::uint32_t cause = 0;  // as IdleCause
  };
  std::span<const Idle> idle{};  // by rank and time

  struct Memory {
    double time = 0;  // seconds
    std::int64_t bytes = 0;
  };
  std::span<const Memory> memory{};                // by rank and time
  std::span<const std::uint64_t> memory_begins{};  // by rank, and one more: where its samples begin

  std::shared_ptr<const void> storage{};

  std::uint64_t size() const { return start.size(); }
  const std::string& name_at(std::uint64_t event) const { return names[name_of[event]]; }
};

/// What a table that was made here, and not mapped from a file, has columns of. Any may be empty.
struct EventColumns {
  std::vector<double> start{}, end{};
  std::vector<std::uint32_t> name_of{};
  std::vector<std::uint64_t> critical{}, memory_begins{};
  std::vector<EventTable::Idle> idle{};
  std::vector<EventTable::Memory> memory{};

  /// For so many events.
  void reserve(std::uint64_t events);
};
/// The table's columns are these from now on, which it keeps.
void set_columns(EventTable& table, std::shared_ptr<const EventColumns> columns);

/// The table of a Timeline. Spans of one row that overlap get as many tracks as it takes. `places`,
/// if given, gets the event that each span has become.
EventTable table_of(const Timeline& timeline, std::vector<std::uint64_t>* places = nullptr);

/// The way back: spans in the order of the events. Names of tracks and ranks are left behind; among
/// their shards spans are as long as they waited there.
Timeline timeline_of(const EventTable& table);

/// "rank 3", or what the trace calls it.
std::string rank_name(const EventTable& table, int rank);

}  // namespace pipewright::plan
