#pragma once

// Checks that an EventTable, before it is written or after it was read, is valid.

#include <cstdint>
#include <optional>
#include <string>

#include "pipewright/plan/timeline/event_table.hpp"

namespace pipewright::plan {

/// The sections of a native timeline file, in their order.
enum class EventSection {
  Texts,     // names of the timeline, events, ranks and tracks, concatenated without separators
  TextEnds,  // end of each text
  Tracks,
  Start,
  End,
  NameOf,
  Critical,
  Idle,
  Memory,
  MemoryBegins,
};
inline constexpr std::size_t event_sections = 10;

struct EventTableFault {
  std::optional<EventSection> section;  // empty for the header
  std::uint64_t element = 0;            // index within the section
  std::string what;
};

/// Returns the first fault, or nothing for a valid table.
std::optional<EventTableFault> fault_of(const EventTable& table);

}  // namespace pipewright::plan
