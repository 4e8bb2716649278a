#pragma once

// The positions of the timeline's parts in the viewport, as a value: the minimap, the ruler below
// it, the headers on the left, the rows, and the legend at the bottom. In pixels of the viewport.

#include <QRectF>
#include <QSizeF>

#include "pipewright/gui/timeline/legend.hpp"
#include "pipewright/gui/timeline/row_layout.hpp"
#include "pipewright/gui/timeline/time_scale.hpp"

namespace pipewright::gui {

/// The ghost and the front table within a row, in pixels from its top.
struct RowParts {
  double ghost_top = 0, ghost_height = 0;
  double front_top = 0, front_height = 0;
};

struct TimelineLayout {
  static constexpr double minimap_height = 44;
  static constexpr double ruler_height = 24;
  static constexpr double rows_top = minimap_height + ruler_height;
  static constexpr double legend_height = 26;  // of one of its rows
  static constexpr double least_header = 116;
  static constexpr double busy_width = 56;   // part of a header: the busy time
  static constexpr double beside_name = 66;  // part of a header: the busy time and margins

  QSizeF viewport;
  double plot_left = least_header;  // headers are as wide as the rows' names
  double note_width = 0;            // part of a header: its note
  bool ghost_above = false;
  double scroll = 0;  // of the rows that are not pinned
  TimeScale scale;    // from the left of the plot
  RowLayout rows;
  PlacedLegend legend;

  double plot_width() const { return std::max(1.0, viewport.width() - plot_left - gap); }
  double x(double seconds) const { return plot_left + scale.x(seconds); }
  double time(double x) const { return scale.time(x - plot_left); }

  /// Returns where the legend begins.
  double rows_bottom() const { return viewport.height() - legend.rows * legend_height; }
  /// Returns the top of the visible area for rows that are not pinned.
  double scrolled_top() const { return rows_top + rows.pinned_height; }
  double row_y(const PlacedRow& row) const;
  /// Returns an empty rectangle if the rank is not shown.
  QRectF row_rect(int rank) const;
  RowParts parts_of(const PlacedRow& row) const;

  std::span<const PlacedRow> pinned_rows() const { return std::span(rows.rows).first(rows.pinned); }
  /// Returns the visible rows that are not pinned.
  std::span<const PlacedRow> scrolled_rows() const;
  std::vector<const PlacedHeading*> headings_in_sight() const;
  const PlacedRow* row_at(double y) const;
  /// Returns the ranks whose rows are between two heights, from top to bottom.
  std::vector<int> ranks_between(double top, double bottom) const;
};

}  // namespace pipewright::gui
