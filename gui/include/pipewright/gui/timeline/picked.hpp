#pragma once

// The selection in a timeline.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace pipewright::gui {

struct PickedEvent {
  bool ghost = false;  // in the ghost table
  std::uint64_t event = 0;
  friend bool operator==(const PickedEvent&, const PickedEvent&) = default;
};

/// An interval in which a rank computes nothing.
struct PickedIdle {
  int rank = 0;
  double time = 0;  // seconds, at the click
  double start = 0;
  double end = 0;
  friend bool operator==(const PickedIdle&, const PickedIdle&) = default;
};

struct PickedArea {
  double first = 0;  // seconds
  double last = 0;
  std::vector<int> ranks;  // from top to bottom
  friend bool operator==(const PickedArea&, const PickedArea&) = default;
};

using Picked = std::variant<std::monostate, PickedEvent, PickedIdle, PickedArea>;

class PaintedTable;
/// Returns what a rank does at an instant: the action that it computes, or the whole gap.
Picked picked_at(const PaintedTable& table, int rank, double time);

/// Ranks and times as a user writes them: "1@12.5" or "0-3@10-20", in milliseconds.
struct Pointed {
  int first_rank = 0;
  int last_rank = 0;
  double first = 0;  // seconds
  double last = 0;   // equal to `first`: one instant
};
std::optional<Pointed> picked_from(const std::string& text);
/// Returns the selection at this place; an area contains those of its ranks that exist.
Picked picked_in(const PaintedTable& table, const Pointed& at);

}  // namespace pipewright::gui
