#pragma once

// The meaning of the colors, in as many rows as the width requires.

#include <QColor>
#include <QFontMetricsF>
#include <QPointF>
#include <QString>
#include <array>
#include <vector>

#include "pipewright/gui/look/theme.hpp"
#include "pipewright/gui/timeline/painted_table.hpp"

namespace pipewright::gui {

struct LegendEntry {
  QString words;
  QColor color;       // of the box before the text
  double height = 0;  // of the box; 0: no box, the text is the heading of the following entries
};

struct PlacedLegend {
  std::vector<QPointF> places;  // left edge of each entry, with its row as y
  int rows = 1;
};

inline constexpr double legend_box = 16;  // including the space after it

/// The kinds of actions, rows and causes of idle time that occur in a table.
class LegendContents {
 public:
  LegendContents() = default;
  explicit LegendContents(const PaintedTable& table);
  /// `heat`: classes are differences from the prediction instead of kinds.
  std::vector<LegendEntry> entries(const Theme& theme, bool heat) const;

 private:
  std::array<bool, class_count> has_kind_{}, has_cause_{};
  std::array<bool, 4> has_row_{};
};

/// Places entries from `left` to `right`. Entries that do not fit continue in the next row, which
/// begins at a heading if possible.
PlacedLegend placed(const std::vector<LegendEntry>& entries, const QFontMetricsF& metrics,
                    double left, double right);

}  // namespace pipewright::gui
