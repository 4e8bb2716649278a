#pragma once

// Images of the rows and of the minimap, cached as long as nothing moves.

#include <QImage>
#include <QPainter>

#include "pipewright/gui/timeline/timeline_model.hpp"

namespace pipewright::gui {

/// An event that is wide enough for its name.
struct RowLabel {
  QRectF box;
  std::uint64_t event = 0;
  bool ghost = false;
  QRgb fill = 0;
};

class RowsImage {
 public:
  /// The contents of the last image of the rows: parts out of sight cost nothing.
  struct Counts {
    std::size_t rows = 0, headings = 0, labels = 0;
  };
  const Counts& counts() const { return counts_; }
  const QImage& map() const { return map_; }

  void rows_changed() { rows_dirty_ = true; }
  void all_changed() { rows_dirty_ = map_dirty_ = true; }
  /// Renders what has changed, at `scale` screen pixels per viewport pixel.
  void update(const TimelineModel& model, double scale);
  void paint(QPainter& painter) const { painter.drawImage(QPointF(0, 0), rows_); }
  void paint_labels(QPainter& painter, const TimelineModel& model) const;

 private:
  QImage rows_, map_;
  std::vector<RowLabel> labels_;
  Counts counts_;
  bool rows_dirty_ = true, map_dirty_ = true;
};

}  // namespace pipewright::gui
