#pragma once

// A mouse: events as Qt sends them, to the widget that lies under it.

#include <QPointF>
#include <QWidget>

namespace pipewright::test {

/// Presses on a point of a widget, moves over some points between and lets go. Fails where another
/// widget lies over it.
void drag(QWidget& widget, QPointF from, QPointF to, Qt::KeyboardModifiers keys = {});
void click(QWidget& widget, QPointF at);
void double_click(QWidget& widget, QPointF at);
/// Moves there with no button held.
void hover(QWidget& widget, QPointF at);
/// Turns the wheel by so many steps; above 0: away from the hand.
void wheel(QWidget& widget, QPointF at, int steps, Qt::KeyboardModifiers keys = {});
/// The help that stands there.
QString tooltip(QWidget& widget, QPointF at);

}  // namespace pipewright::test
