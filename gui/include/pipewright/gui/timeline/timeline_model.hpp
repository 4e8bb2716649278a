#pragma once

// The content and state of the timeline: tables, rows, selection and positions. It needs no window:
// the view forwards to it, and painters paint it.

#include "pipewright/gui/timeline/timeline_layout.hpp"
#include "pipewright/gui/timeline/timeline_tables.hpp"

namespace pipewright::gui {

/// An arrow from the end of one event of the front table to the start of another.
struct Arrow {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
};

/// Highlighted items: the selection, its explanation, and the item under the mouse.
struct TimelineMarks {
  Picked picked{};
  Picked hovered{};
  int row = -1;                            // the rank whose header is marked; -1: none
  std::vector<Arrow> arrows{};             // between events of a chain
  std::vector<std::uint64_t> highlight{};  // outlined events of the front table

  /// Changes the selection and drops the explanation of the previous one.
  void pick(Picked now) { *this = {.picked = std::move(now), .hovered = std::move(hovered)}; }
};

struct TimelineModel {
  TimelineTables tables;
  RowState rows;
  RowNotes notes;
  TimelineMarks marks;
  TimelineLayout layout;
  LegendContents legend;

  const Theme* theme = &light_theme();
  bool heat = false;      // classes are differences from the prediction instead of kinds
  bool overlaid = false;  // paint both tables over each other instead of the ghost above
  bool show_critical = true;

  /// Replaces the tables, and drops marks on the previous ones.
  void show(TimelineTables shown);
  /// Makes headers as wide as their names and notes.
  void fit_headers();
  void lay_out(QSizeF viewport);

  /// Returns the scale that shows both tables from begin to end.
  TimeScale whole() const { return fitted(0, tables.longest(), layout.plot_width()); }
  bool shows_whole() const;
  /// Returns the visible part of the front table, in seconds.
  std::pair<double, double> seen() const;
  std::vector<LegendEntry> legend_entries() const { return legend.entries(*theme, heat); }

  /// Returns where an event of the front table is painted; empty if its row is not shown.
  QRectF event_rect(std::uint64_t event) const;
  /// Returns an empty rectangle for events of the ghost.
  QRectF rect_of(const Picked& picked) const;
  Picked pick_at(QPointF at) const;
  /// Returns the instant at a point, or that of the nearest edge of an event within a few pixels.
  double snapped(QPointF at) const;
  /// Returns the event `by` places from the selection on its track.
  std::optional<PickedEvent> step(int by) const;
  /// Returns a scale that shows a span, and makes it wide enough to be seen.
  TimeScale revealing(const PickedSpan& span) const;

 private:
  std::optional<PickedEvent> event_under(const PlacedRow& row, QPointF at) const;
};

}  // namespace pipewright::gui
