#include "pipewright/gui/panels/choice.hpp"

#include <QPainter>

namespace pipewright::gui {

void Choice::paintEvent(QPaintEvent* event) {
  QComboBox::paintEvent(event);
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(palette().color(QPalette::PlaceholderText), 1.5, Qt::SolidLine, Qt::RoundCap,
                      Qt::RoundJoin));
  const QPointF tip(width() - 12, height() / 2.0 + 2);
  painter.drawPolyline(QPolygonF{tip + QPointF(-3.5, -3.5), tip, tip + QPointF(3.5, -3.5)});
}

}  // namespace pipewright::gui
