#include "gui/support/mouse.hpp"

#include <QApplication>
#include <QHelpEvent>
#include <QMouseEvent>
#include <QToolTip>
#include <QWheelEvent>

#include "support/catch.hpp"

namespace pipewright::test {
namespace {

void send(QWidget& widget, QEvent::Type type, QPointF at, Qt::MouseButton button,
          Qt::MouseButtons held, Qt::KeyboardModifiers keys = {}) {
  QMouseEvent event(type, at, widget.mapToGlobal(at), button, held, keys);
  QApplication::sendEvent(&widget, &event);
  QApplication::processEvents();
}

/// Checks that the widget is the topmost one at this point, since a mouse reaches only that.
void require_on_top(const QWidget& widget, QPointF at) {
  QWidget* const window = widget.window();
  const QPoint in_window = widget.mapTo(window, at.toPoint());
  CAPTURE(widget.objectName().toStdString(), at.x(), at.y());
  REQUIRE(window->isVisible());
  REQUIRE(window->childAt(in_window) == &widget);
}

}  // namespace

void drag(QWidget& widget, QPointF from, QPointF to, Qt::KeyboardModifiers keys) {
  require_on_top(widget, from);
  send(widget, QEvent::MouseButtonPress, from, Qt::LeftButton, Qt::LeftButton, keys);
  constexpr int moves = 5;
  // The dragged item, such as a stage boundary, may move along, so the mouse moves relative to the
  // window.
  const QPointF begin = widget.mapToGlobal(from), by = to - from;
  for (int move = 1; move <= moves; ++move)
    send(widget, QEvent::MouseMove, widget.mapFromGlobal(begin + by * move / moves), Qt::NoButton,
         Qt::LeftButton, keys);
  send(widget, QEvent::MouseButtonRelease, widget.mapFromGlobal(begin + by), Qt::LeftButton, {},
       keys);
}

void click(QWidget& widget, QPointF at) {
  require_on_top(widget, at);
  send(widget, QEvent::MouseButtonPress, at, Qt::LeftButton, Qt::LeftButton);
  send(widget, QEvent::MouseButtonRelease, at, Qt::LeftButton, {});
}

void double_click(QWidget& widget, QPointF at) {
  click(widget, at);
  send(widget, QEvent::MouseButtonDblClick, at, Qt::LeftButton, Qt::LeftButton);
  send(widget, QEvent::MouseButtonRelease, at, Qt::LeftButton, {});
}

void hover(QWidget& widget, QPointF at) {
  require_on_top(widget, at);
  send(widget, QEvent::MouseMove, at, Qt::NoButton, {});
}

void wheel(QWidget& widget, QPointF at, int steps, Qt::KeyboardModifiers keys) {
  require_on_top(widget, at);
  QWheelEvent event(at, widget.mapToGlobal(at), {}, {0, steps * 120}, {}, keys, Qt::NoScrollPhase,
                    false);
  QApplication::sendEvent(&widget, &event);
  QApplication::processEvents();
}

QString tooltip(QWidget& widget, QPointF at) {
  // Qt hides a tooltip with a delay and keeps its text until then.
  const QString none = "there is no tooltip here";
  const QPoint place = at.toPoint();
  QToolTip::showText(widget.mapToGlobal(place), none, &widget);
  QHelpEvent event(QEvent::ToolTip, place, widget.mapToGlobal(place));
  QApplication::sendEvent(&widget, &event);
  return QToolTip::text() == none ? QString() : QToolTip::text();
}

}  // namespace pipewright::test
