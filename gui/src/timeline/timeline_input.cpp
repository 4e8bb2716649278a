#include "pipewright/gui/timeline/timeline_input.hpp"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QScrollBar>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>
#include <utility>

#include "pipewright/gui/timeline/timeline_view.hpp"

namespace pipewright::gui {
namespace {

constexpr double key_zoom = 1.25;
constexpr double key_pan = 90;  // pixels

}  // namespace

TimelineInput::TimelineInput(TimelineView& view) : view_(view), model_(view.model()) {}

bool TimelineInput::handle(QEvent& event) {
  switch (event.type()) {
    case QEvent::MouseButtonPress:
      press(static_cast<QMouseEvent&>(event));
      return true;
    case QEvent::MouseMove:
      move(static_cast<QMouseEvent&>(event).position());
      return true;
    case QEvent::MouseButtonRelease:
      release(static_cast<QMouseEvent&>(event).position());
      return true;
    case QEvent::MouseButtonDblClick:
      double_click(static_cast<QMouseEvent&>(event).position());
      return true;
    case QEvent::Wheel:
      turn_wheel(static_cast<QWheelEvent&>(event));
      event.accept();
      return true;
    case QEvent::ToolTip:
      if (model_.tables.front)
        show_tip(static_cast<QHelpEvent&>(event));
      return model_.tables.front != nullptr;
    default:
      return false;
  }
}

void TimelineInput::zoom(double factor, double x) {
  if (const auto& front = model_.tables.front)
    view_.set_scale(zoomed(view_.scale(), factor, x, front->length(), model_.layout.plot_width()));
}

void TimelineInput::pan(double pixels) {
  if (const auto& front = model_.tables.front)
    view_.set_scale(panned(view_.scale(), pixels, front->length(), model_.layout.plot_width()));
}

void TimelineInput::press(const QMouseEvent& event) {
  const TimelineLayout& at = model_.layout;
  drag_from_ = mouse_ = event.position();
  moved_ = false;
  if (!model_.tables.front)
    return;
  drag_time_ = at.time(mouse_.x());
  if (mouse_.y() < TimelineLayout::minimap_height && mouse_.x() >= at.plot_left) {
    drag_ = Drag::Map;
    const double time =
        (mouse_.x() - at.plot_left) / at.plot_width() * model_.tables.front->length();
    view_.set_scale(centered(at.scale, time, at.plot_width()));
  } else if (event.button() == Qt::MiddleButton || mouse_.y() < TimelineLayout::rows_top ||
             event.modifiers() & Qt::ShiftModifier) {
    drag_ = Drag::Pan;
  } else if (event.button() == Qt::LeftButton && mouse_.x() < at.plot_left) {
    const PlacedRow* row = at.row_at(mouse_.y());
    drag_ = row != nullptr ? Drag::Row : Drag::None;
    drag_rank_ = row != nullptr ? row->rank : 0;
  } else if (event.button() == Qt::LeftButton) {
    drag_ = Drag::Area;
    drag_time_ = model_.snapped(mouse_);
  }
}

void TimelineInput::move(QPointF to) {
  const QPointF before = std::exchange(mouse_, to);
  moved_ = moved_ || (mouse_ - drag_from_).manhattanLength() > 4;
  switch (drag_) {
    case Drag::Pan:
      pan(before.x() - mouse_.x());
      break;
    case Drag::Map: {
      TimeScale moved = view_.scale();
      moved.first +=
          (mouse_.x() - before.x()) / model_.layout.plot_width() * model_.tables.front->length();
      view_.set_scale(moved);
      break;
    }
    case Drag::Area:
      select_area();
      break;
    case Drag::Row:
      view_.viewport()->update();
      break;
    case Drag::None:
      if (model_.tables.front)
        view_.hover(model_.pick_at(mouse_));
      break;
  }
}

/// Selects the area between the mouse press and the current position.
void TimelineInput::select_area() {
  if (!moved_)
    return;
  const double time = model_.snapped(mouse_);
  const auto [top, bottom] = std::minmax({drag_from_.y(), mouse_.y()});
  view_.pick(PickedArea{std::min(drag_time_, time), std::max(drag_time_, time),
                        model_.layout.ranks_between(top, bottom)});
}

void TimelineInput::release(QPointF at) {
  const Drag was = std::exchange(drag_, Drag::None);
  if (was == Drag::Row && moved_) {
    const PlacedRow* row = model_.layout.row_at(at.y());
    RowState state = model_.rows;
    state.order = moved_before(ordered_ranks(state, model_.tables.front->table().ranks), drag_rank_,
                               row != nullptr ? row->rank : -1);
    view_.set_rows(std::move(state));
  } else if ((was == Drag::Area || was == Drag::Row) && !moved_) {
    view_.pick(model_.pick_at(at));
  }
  view_.viewport()->update();
}

void TimelineInput::double_click(QPointF at) {
  if (at.x() >= model_.layout.plot_left)
    return view_.fit();
  const PlacedRow* row = model_.layout.row_at(at.y());
  if (row == nullptr)
    return;
  RowState state = model_.rows;
  if (!state.collapsed.erase(row->rank))
    state.collapsed.insert(row->rank);
  view_.set_rows(std::move(state));
}

void TimelineInput::turn_wheel(const QWheelEvent& event) {
  const QPoint turned = event.angleDelta();
  const double steps = (turned.y() != 0 ? turned.y() : turned.x()) / 120.0;
  const double x = event.position().x() - model_.layout.plot_left;
  if ((turned.x() != 0 && turned.y() == 0) || event.modifiers() & Qt::ShiftModifier)
    pan(-steps * key_pan);
  else if (event.modifiers() & Qt::ControlModifier || x < 0)
    view_.verticalScrollBar()->setValue(view_.verticalScrollBar()->value() -
                                        static_cast<int>(steps * 48));
  else
    zoom(std::pow(1.2, steps), x);
}

bool TimelineInput::press_key(int key) {
  const TimelineLayout& at = model_.layout;
  const double x = mouse_.x() > at.plot_left && view_.viewport()->underMouse()
                       ? mouse_.x() - at.plot_left
                       : at.plot_width() / 2;
  switch (key) {
    case Qt::Key_W:
      zoom(key_zoom, x);
      return true;
    case Qt::Key_S:
      zoom(1 / key_zoom, x);
      return true;
    case Qt::Key_A:
    case Qt::Key_Left:
      pan(-key_pan);
      return true;
    case Qt::Key_D:
    case Qt::Key_Right:
      pan(key_pan);
      return true;
    case Qt::Key_F:
      view_.fit();
      return true;
    case Qt::Key_BracketLeft:
      view_.walk(-1);
      return true;
    case Qt::Key_BracketRight:
      view_.walk(1);
      return true;
    case Qt::Key_Escape:
      view_.pick({});
      return true;
    default:
      return false;
  }
}

void TimelineInput::show_tip(const QHelpEvent& event) {
  const QPoint at = event.pos();
  const Picked under = model_.pick_at(at);
  const PlacedRow* const row =
      at.x() < model_.layout.plot_left ? model_.layout.row_at(at.y()) : nullptr;
  QString words;       // an empty text hides the last tip
  if (row != nullptr)  // shows a name that the header shortens
    words = QString::fromStdString(plan::rank_name(model_.tables.front->table(), row->rank));
  else if (std::holds_alternative<PickedEvent>(under))
    words = model_.tables.describe(under);
  else if (std::holds_alternative<PickedIdle>(under) && model_.tables.front->facts().is_iteration)
    words = "Idle: click to see the cause.";
  QToolTip::showText(event.globalPos(), words, view_.viewport());
}

std::optional<double> TimelineInput::dragged_row_y() const {
  return drag_ == Drag::Row && moved_ ? std::optional(mouse_.y()) : std::nullopt;
}

}  // namespace pipewright::gui
