#pragma once

// The two timelines that are shown together, and what can be said of a place in them.

#include <QString>
#include <memory>
#include <optional>
#include <utility>

#include "pipewright/gui/timeline/painted_table.hpp"
#include "pipewright/gui/timeline/picked.hpp"

namespace pipewright::gui {

/// When and on which rank something picked lies. An area has its first rank.
struct PickedSpan {
  double first = 0, last = 0;  // seconds
  int rank = -1;
};

/// `front` is what is looked at; `ghost` is drawn behind it, such as a prediction. Either may be
/// null.
struct TimelineTables {
  std::shared_ptr<PaintedTable> front{}, ghost{};

  const std::shared_ptr<PaintedTable>& of(const PickedEvent& event) const {
    return event.ghost ? ghost : front;
  }
  double longest() const { return std::max(front->length(), ghost ? ghost->length() : 0.0); }
  /// Nothing where nothing is picked.
  std::optional<PickedSpan> span_of(const Picked& picked) const;
  /// The event `by` places after another on its track, as far as the track goes.
  PickedEvent after(const PickedEvent& event, int by) const;
  /// The name, times and kind of an event, or the length of a gap, for people.
  QString describe(const Picked& picked) const;
};

}  // namespace pipewright::gui
