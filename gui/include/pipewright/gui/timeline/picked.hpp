#pragma once

// What was pointed at in a timeline.

#include <cstdint>
#include <variant>
#include <vector>

namespace pipewright::gui {

struct PickedEvent {
  bool ghost = false;  // of the table behind
  std::uint64_t event = 0;
  friend bool operator==(const PickedEvent&, const PickedEvent&) = default;
};

/// A stretch in which a rank computes nothing.
struct PickedIdle {
  int rank = 0;
  double time = 0;  // seconds, where it was clicked
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

}  // namespace pipewright::gui
