#pragma once

// What colours mean, in as many rows as the width asks for.

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
  QColor colour;      // of the box before the words
  double height = 0;  // of the box; 0: no box, the words are the heading of what follows
};

struct PlacedLegend {
  std::vector<QPointF> places;  // the left of each entry, and its row as y
  int rows = 1;
};

inline constexpr double legend_box = 16;  // with the space behind it

/// Which kinds of actions, rows and causes of idle time a table has any of.
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

/// Places entries from `left` to `right`. What does not fit in one row goes on in the next, where a
/// heading begins if there is one.
PlacedLegend placed(const std::vector<LegendEntry>& entries, const QFontMetricsF& metrics,
                    double left, double right);

}  // namespace pipewright::gui
