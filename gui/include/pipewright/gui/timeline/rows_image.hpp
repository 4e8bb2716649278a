#pragma once

// The timeline's rows and its minimap as images, which are rendered again only after a change.

#include <QImage>
#include <QPainter>

#include "pipewright/gui/timeline/timeline_model.hpp"

namespace pipewright::gui {

/// An event that is wide enough for a label: its name or, in less space, its microbatch or step.
struct RowLabel {
  QRectF box;
  std::uint64_t event = 0;
  bool ghost = false;  // the event is in the ghost, the timeline that is compared with
  QRgb fill = 0;       // color of the event under the label
};

class RowsImage {
 public:
  /// Numbers of rows, row headings and labels in sight when the rows were last rendered. Tests use
  /// them to check that nothing out of sight is rendered.
  struct Counts {
    std::size_t rows = 0, headings = 0, labels = 0;
  };
  const Counts& counts() const { return counts_; }
  const QImage& map() const { return map_; }

  void rows_changed() { rows_dirty_ = true; }
  void all_changed() { rows_dirty_ = map_dirty_ = true; }
  /// Renders the images that are marked as changed, with `scale` device pixels per viewport pixel.
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
