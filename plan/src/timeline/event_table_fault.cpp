#include "timeline/event_table_fault.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "timeline/utf8.hpp"

namespace pipewright::plan {
namespace {

using Found = std::optional<EventTableFault>;

constexpr int most_ranks_of_table = 1'000'000;
constexpr double latest = std::numeric_limits<double>::max();

EventTableFault at(EventSection section, std::uint64_t element, std::string what) {
  return {section, element, std::move(what)};
}

bool is_time(double time) { return time >= 0 && time <= latest; }

Found fault_of_header(const EventTable& table) {
  if (table.ranks < 1 || table.ranks > most_ranks_of_table)
    return EventTableFault{
        {}, 0, fmt::format("{} ranks; 1 to {} can be", table.ranks, most_ranks_of_table)};
  if (!is_time(table.length.value))
    return EventTableFault{{}, 0, fmt::format("a length of {} s", table.length.value)};
  if (!table.rank_names.empty() && !std::cmp_equal(table.rank_names.size(), table.ranks))
    return EventTableFault{
        {}, 0, fmt::format("{} names of {} ranks", table.rank_names.size(), table.ranks)};
  return {};
}

Found fault_of_texts(const EventTable& table) {
  std::uint64_t text = 0;
  Found found;
  const auto look_at = [&](const std::string& name) {
    if (!found && !is_utf8(name))
      found = at(EventSection::TextEnds, text, fmt::format("text {} is not UTF-8", text));
    ++text;
  };
  look_at(table.name);
  std::for_each(table.names.begin(), table.names.end(), look_at);
  std::for_each(table.rank_names.begin(), table.rank_names.end(), look_at);
  for (const EventTrack& track : table.tracks)
    look_at(track.name);
  return found;
}

/// Checks that the tracks divide the events among them, in the order of ranks and rows.
Found fault_of_tracks(const EventTable& table) {
  std::uint64_t next = 0;
  const EventTrack* before = nullptr;
  for (const EventTrack& track : table.tracks) {
    const auto refuse = [&](const std::string& what) {
      const auto index = static_cast<std::uint64_t>(&track - table.tracks.data());
      return at(EventSection::Tracks, index, fmt::format("track {} {}", index, what));
    };
    if (track.rank < 0 || track.rank >= table.ranks)
      return refuse(fmt::format("is of rank {} of {}", track.rank, table.ranks));
    if (track.row < Row::Compute || track.row > Row::Reduce)
      return refuse(fmt::format("is of row {}", static_cast<int>(track.row)));
    if (track.depth < 0)
      return refuse(fmt::format("lies {} deep", track.depth));
    if (before != nullptr && std::tie(track.rank, track.row) < std::tie(before->rank, before->row))
      return refuse("comes before a track of a later rank or row");
    if (track.begin != next || track.end < track.begin || track.end > table.size())
      return refuse(fmt::format("has events {} to {}; it begins with event {} of {}", track.begin,
                                track.end, next, table.size()));
    next = track.end;
    before = &track;
  }
  if (next != table.size())
    return at(EventSection::Tracks, table.tracks.size(),
              fmt::format("events from {} to {} are of no track", next, table.size()));
  return {};
}

/// Returns true if an event of a track is valid. `free` is the end of the event before it.
bool is_sound(double start, double end, double free) {
  return (start >= free) & (end >= start) & (end <= latest);
}

Found fault_of_times(const EventTable& table, const EventTrack& track) {
  // One check without a branch per event is faster; the faulty event is searched for only if it
  // fails.
  bool sound = true;
  double free = 0;
  for (std::uint64_t event = track.begin; event < track.end; ++event) {
    sound &= is_sound(table.start[event], table.end[event], free);
    free = table.end[event];
  }
  if (sound)
    return {};
  free = 0;
  std::uint64_t event = track.begin;
  for (; is_sound(table.start[event], table.end[event], free); ++event)
    free = table.end[event];
  return at(EventSection::Start, event,
            fmt::format("event {} is from {} s to {} s, and the one before it in its track ends at "
                        "{} s",
                        event, table.start[event], table.end[event], free));
}

Found fault_of_events(const EventTable& table) {
  if (table.end.size() != table.size() || table.name_of.size() != table.size())
    return at(EventSection::End, 0,
              fmt::format("{} starts, {} ends and {} names of events", table.size(),
                          table.end.size(), table.name_of.size()));
  if (const Found found = fault_of_tracks(table))
    return found;
  for (const EventTrack& track : table.tracks)
    if (const Found found = fault_of_times(table, track))
      return found;
  std::uint32_t most = 0;
  for (const std::uint32_t name : table.name_of)
    most = std::max(most, name);
  if (most >= table.names.size() && table.size() > 0) {
    const auto event = static_cast<std::uint64_t>(
        std::find(table.name_of.begin(), table.name_of.end(), most) - table.name_of.begin());
    return at(EventSection::NameOf, event,
              fmt::format("event {} has name {} of {}", event, most, table.names.size()));
  }
  for (std::uint64_t i = 0; i < table.critical.size(); ++i)
    if (table.critical[i] >= table.size())
      return at(
          EventSection::Critical, i,
          fmt::format("event {} of {} is on the critical path", table.critical[i], table.size()));
  return {};
}

/// Checks that idle time is in the order of rank and time.
Found fault_of_idle(const EventTable& table) {
  for (std::uint64_t i = 0; i < table.idle.size(); ++i) {
    const EventTable::Idle& idle = table.idle[i];
    const auto refuse = [&](const std::string& what) {
      return at(EventSection::Idle, i, fmt::format("idle time {} {}", i, what));
    };
    if (idle.rank < 0 || idle.rank >= table.ranks)
      return refuse(fmt::format("is of rank {} of {}", idle.rank, table.ranks));
    if (idle.cause >= idle_causes().size())
      return refuse(fmt::format("has cause {}", idle.cause));
    if (!is_time(idle.start) || !is_time(idle.end) || idle.end < idle.start)
      return refuse(fmt::format("is from {} s to {} s", idle.start, idle.end));
    if (i > 0 &&
        std::tie(idle.rank, idle.start) < std::tie(table.idle[i - 1].rank, table.idle[i - 1].start))
      return refuse("comes after a later one or one of a later rank");
  }
  return {};
}

Found fault_of_memory(const EventTable& table) {
  const auto begins = table.memory_begins;
  const auto ranks = static_cast<std::size_t>(table.ranks);
  if (begins.size() != ranks + 1 || begins.front() != 0 || begins.back() != table.memory.size())
    return at(EventSection::MemoryBegins, 0,
              fmt::format("{} bounds for the {} samples of memory of {} ranks", begins.size(),
                          table.memory.size(), ranks));
  for (std::size_t rank = 0; rank < ranks; ++rank)
    if (begins[rank] > begins[rank + 1])
      return at(
          EventSection::MemoryBegins, rank,
          fmt::format("samples of rank {} from {} to {}", rank, begins[rank], begins[rank + 1]));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    double free = 0;
    for (std::uint64_t i = begins[rank]; i < begins[rank + 1]; ++i) {
      const EventTable::Memory& sample = table.memory[i];
      if (!is_sound(sample.time, sample.time, free) || sample.bytes < 0)
        return at(EventSection::Memory, i,
                  fmt::format("sample {} has {} bytes at {} s, after one at {} s", i, sample.bytes,
                              sample.time, free));
      free = sample.time;
    }
  }
  return {};
}

}  // namespace

std::optional<EventTableFault> fault_of(const EventTable& table) {
  for (const auto look :
       {fault_of_header, fault_of_texts, fault_of_events, fault_of_idle, fault_of_memory})
    if (Found found = look(table))
      return found;
  return {};
}

}  // namespace pipewright::plan
