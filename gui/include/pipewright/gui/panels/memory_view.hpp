#pragma once

// Each rank's memory over time, stacked by owner, predicted and measured, with the device's memory
// as a line. Its time axis is aligned with the timeline.

#include <QAbstractScrollArea>
#include <QImage>

#include "pipewright/gui/document/memory_picture.hpp"
#include "pipewright/gui/panels/panel.hpp"
#include "pipewright/gui/timeline/time_scale.hpp"

namespace pipewright::gui {

class MemoryView : public Panel<QAbstractScrollArea> {
 public:
  /// `workspace` must outlive it.
  explicit MemoryView(Workspace& workspace, QWidget* parent = nullptr);
  void set_theme(const Theme& theme);
  /// Shows the same section of time as the timeline, which begins `left` pixels from the edge.
  void follow(const TimeScale& scale, double left, double width);

  /// Returns the owners of a rank's memory at an instant, one per line.
  QString holders_words(int rank, double time) const;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void scrollContentsBy(int dx, int dy) override;
  bool viewportEvent(QEvent* event) override;

 private:
  void rebuild() override;
  void lay_out();
  double row_top(int rank) const;
  int rank_at(double y) const;
  double y_of(int rank, double bytes) const;
  void render();
  void render_rank(int rank, double ratio);
  void paint_legend(QPainter& painter) const;
  void paint_measured(QPainter& painter, int rank) const;
  void paint_marks(QPainter& painter, int rank) const;
  QString peak_words(int rank) const;
  void paint_peak(QPainter& painter, int rank) const;
  void paint_name(QPainter& painter, int rank) const;
  void paint_hover(QPainter& painter) const;

  bool dirty_ = true;
  MemoryPicture picture_;
  double top_bytes_ = 1;  // at the top of each row
  int fullest_ = -1;      // the rank with the highest peak
  double row_height_ = 64;
  TimeScale scale_;
  double left_ = 116;
  double width_ = 1;
  QImage image_;
  QPointF mouse_{-1, -1};
};

}  // namespace pipewright::gui
