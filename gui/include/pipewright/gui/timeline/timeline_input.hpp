#pragma once

// Translates mouse, wheel and key events of a timeline into its commands.

#include <QPointF>
#include <optional>

class QEvent;
class QHelpEvent;
class QKeyEvent;
class QMouseEvent;
class QWheelEvent;

namespace pipewright::gui {

class TimelineView;
struct TimelineModel;

class TimelineInput {
 public:
  explicit TimelineInput(TimelineView& view);

  /// Handles an event of the viewport; returns false if it is not a mouse event.
  bool handle(QEvent& event);
  /// Handles a key; returns false if it has no effect here.
  bool press_key(int key);
  /// Returns where a row is being dragged to; nothing unless one is dragged.
  std::optional<double> dragged_row_y() const;

 private:
  enum class Drag { None, Area, Pan, Map, Row };

  void press(const QMouseEvent& event);
  void move(QPointF to);
  void release(QPointF at);
  void double_click(QPointF at);
  void turn_wheel(const QWheelEvent& event);
  void show_tip(const QHelpEvent& event);
  void zoom(double factor, double x);
  void pan(double pixels);
  void select_area();

  TimelineView& view_;
  const TimelineModel& model_;
  Drag drag_ = Drag::None;
  QPointF drag_from_, mouse_;
  double drag_time_ = 0;
  int drag_rank_ = 0;
  bool moved_ = false;
};

}  // namespace pipewright::gui
