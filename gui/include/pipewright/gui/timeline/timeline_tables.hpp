#pragma once

// The two timelines that are shown together, and descriptions of their items.

#include <QString>
#include <memory>
#include <optional>
#include <utility>

#include "pipewright/gui/timeline/painted_table.hpp"
#include "pipewright/gui/timeline/picked.hpp"

namespace pipewright::gui {

/// The time and rank of a selected item. An area has its first rank.
struct PickedSpan {
  double first = 0, last = 0;  // seconds
  int rank = -1;
};

/// `front` is the main table; `ghost` is the paler one for comparison, such as a prediction. Either
/// may be null.
struct TimelineTables {
  std::shared_ptr<PaintedTable> front{}, ghost{};

  const std::shared_ptr<PaintedTable>& of(const PickedEvent& event) const {
    return event.ghost ? ghost : front;
  }
  double longest() const { return std::max(front->length(), ghost ? ghost->length() : 0.0); }
  /// Returns nothing if nothing is selected.
  std::optional<PickedSpan> span_of(const Picked& picked) const;
  /// Returns the event `by` places after another on its track, limited to the track's ends.
  PickedEvent after(const PickedEvent& event, int by) const;
  /// Returns the name, times and kind of an event, or the length of a gap, as text.
  QString describe(const Picked& picked) const;
};

}  // namespace pipewright::gui
