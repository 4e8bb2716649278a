#pragma once

// What the timeline shows and what has been done to it: tables, rows, the selection and where all
// of it stands. It needs no window: the view forwards to it, and painters paint what it says.

#include "pipewright/gui/timeline/timeline_layout.hpp"
#include "pipewright/gui/timeline/timeline_tables.hpp"

namespace pipewright::gui {

/// An arrow from the end of one event of the front table to the start of another.
struct Arrow {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
};

/// What stands out: the selection, what explains it, and what the mouse is over.
struct TimelineMarks {
  Picked picked{};
  Picked hovered{};
  int row = -1;                            // the rank whose header is marked; -1: none
  std::vector<Arrow> arrows{};             // between events of a chain
  std::vector<std::uint64_t> highlight{};  // outlined events of the front table

  /// Selects something else and drops what explained the last selection.
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
  bool overlaid = false;  // both tables are painted over each other instead of the ghost above
  bool show_critical = true;

  /// Replaces the tables. Marks on the last ones are dropped.
  void show(TimelineTables shown);
  /// Makes headers as wide as the names and notes in them.
  void fit_headers();
  void lay_out(QSizeF viewport);

  /// The scale that shows both tables from begin to end.
  TimeScale whole() const { return fitted(0, tables.longest(), layout.plot_width()); }
  bool shows_whole() const;
  /// The part of the front table that is in view, in seconds.
  std::pair<double, double> seen() const;
  std::vector<LegendEntry> legend_entries() const { return legend.entries(*theme, heat); }

  /// Where an event of the front table is painted; empty where its row is not shown.
  QRectF event_rect(std::uint64_t event) const;
  /// Empty for events of the ghost.
  QRectF rect_of(const Picked& picked) const;
  Picked pick_at(QPointF at) const;
  /// The instant at a point, or that of the nearest border of an event within a few pixels.
  double snapped(QPointF at) const;
  /// The event that a step from the selection leads to, along its track.
  std::optional<PickedEvent> step(int by) const;
  /// The scale with a span in sight, and wide enough to be seen.
  TimeScale revealing(const PickedSpan& span) const;

 private:
  std::optional<PickedEvent> event_under(const PlacedRow& row, QPointF at) const;
};

}  // namespace pipewright::gui
