#pragma once

// What an EventTable that is written or was read must hold.

#include <cstdint>
#include <optional>
#include <string>

#include "pipewright/plan/timeline/event_table.hpp"

namespace pipewright::plan {

/// The parts of a native timeline file, in their order.
enum class EventSection {
  Texts,     // the name, names of events, of ranks and of tracks, without anything between them
  TextEnds,  // where each ends
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
  std::optional<EventSection> section;  // none: the header
  std::uint64_t element = 0;            // of the section
  std::string what;
};

/// The first fault; none in a sound table.
std::optional<EventTableFault> fault_of(const EventTable& table);

}  // namespace pipewright::plan
