#pragma once

// A Timeline with millions of events: columns instead of objects, which can be mapped from a file
// (event_file.hpp) and painted without a copy.

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
  std::string name{};       // "compute", "send"; in a foreign trace, the thread's name
  std::uint64_t begin = 0;  // its events are [begin, end)
  std::uint64_t end = 0;
  int depth = 0;  // nesting: its events are inside those of the track before
  friend bool operator==(const EventTrack&, const EventTrack&) = default;
};

/// The columns of a timeline, as views of `storage`, which copies of the table share.
struct EventTable {
  std::string name;  // such as "predicted"
  int ranks = 0;
  Seconds length;
  std::vector<std::string> names{};       // of events, without duplicates
  std::vector<InstructionKind> kinds{};   // by name, if all events are instructions; else empty
  std::vector<std::string> rank_names{};  // in a foreign trace; empty: "rank 0", "rank 1", …
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
  std::span<const Memory> memory{};  // by rank and time
  /// By rank, and one more: the start of its samples.
  std::span<const std::uint64_t> memory_begins{};

  std::shared_ptr<const void> storage{};

  std::uint64_t size() const { return start.size(); }
  const std::string& name_at(std::uint64_t event) const { return names[name_of[event]]; }
};

/// The columns of a table that was made in memory and not mapped from a file. Any may be empty.
struct EventColumns {
  std::vector<double> start{}, end{};
  std::vector<std::uint32_t> name_of{};
  std::vector<std::uint64_t> critical{}, memory_begins{};
  std::vector<EventTable::Idle> idle{};
  std::vector<EventTable::Memory> memory{};

  /// Reserves space for this many events.
  void reserve(std::uint64_t events);
};
/// Makes these the table's columns and shares their ownership.
void set_columns(EventTable& table, std::shared_ptr<const EventColumns> columns);

/// Converts a Timeline to a table. Overlapping spans of one row are spread over several tracks. If
/// `places` is given, it receives the event of each span.
EventTable table_of(const Timeline& timeline, std::vector<std::uint64_t>* places = nullptr);

/// Converts a table to a Timeline, with spans in the order of the events. Names of tracks and ranks
/// are lost; of the communication within an action, only the waits for late ranks remain.
Timeline timeline_of(const EventTable& table);

/// Returns "rank 3", or the rank's name in a foreign trace.
std::string rank_name(const EventTable& table, int rank);

}  // namespace pipewright::plan
