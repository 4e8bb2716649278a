#pragma once

// Simulates a mouse: sends Qt's events to the widget under it.

#include <QPointF>
#include <QWidget>

namespace pipewright::test {

/// Presses on a point of a widget, moves to another one and releases. Fails if another widget
/// covers the point.
void drag(QWidget& widget, QPointF from, QPointF to, Qt::KeyboardModifiers keys = {});
void click(QWidget& widget, QPointF at);
void double_click(QWidget& widget, QPointF at);
/// Moves there with no button pressed.
void hover(QWidget& widget, QPointF at);
/// Turns the wheel by `steps`; positive: away from the user.
void wheel(QWidget& widget, QPointF at, int steps, Qt::KeyboardModifiers keys = {});
/// Returns the tooltip at a point.
QString tooltip(QWidget& widget, QPointF at);

}  // namespace pipewright::test
