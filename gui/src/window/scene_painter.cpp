#include "pipewright/gui/window/scene_painter.hpp"

#include <QFontInfo>
#include <QFontMetricsF>
#include <QPainterPath>

namespace pipewright::gui {
namespace {

QColor color_of(const std::string& name, std::optional<double> opacity) {
  QColor color(QString::fromStdString(name));
  if (opacity)
    color.setAlphaF(static_cast<float>(*opacity));
  return color;
}

/// Colors follow SVG: a shape without a color is filled black and has no outline.
QBrush brush_of(const draw::Look& look) {
  if (look.fill == "none")
    return Qt::NoBrush;
  return color_of(look.fill.empty() ? "#000000" : look.fill, look.fill_opacity);
}

QPen pen_of(const draw::Look& look) {
  if (look.stroke.empty() || look.stroke == "none")
    return Qt::NoPen;
  const double width = look.stroke_width.value_or(1);
  QPen pen(color_of(look.stroke, look.stroke_opacity), width);
  pen.setCapStyle(Qt::FlatCap);
  pen.setJoinStyle(look.round_joins ? Qt::RoundJoin : Qt::MiterJoin);
  if (look.dashed)
    pen.setDashPattern({6 / width, 3 / width});
  return pen;
}

QPainterPath path_of(const draw::Boxes& boxes) {
  QPainterPath path;
  path.setFillRule(Qt::WindingFill);
  for (const draw::Box& box : boxes.boxes)
    path.addRect(box.x, box.y, box.width, box.height);
  return path;
}

QPainterPath path_of(const draw::Lines& lines) {
  QPainterPath path;
  path.setFillRule(Qt::WindingFill);
  for (const draw::Stroke& stroke : lines.strokes)
    switch (stroke.kind) {
      case draw::Stroke::Kind::Move:
        path.moveTo(stroke.x, stroke.y);
        break;
      case draw::Stroke::Kind::Line:
      case draw::Stroke::Kind::Across:
      case draw::Stroke::Kind::UpOrDown:
        path.lineTo(stroke.x, stroke.y);
        break;
      case draw::Stroke::Kind::Close:
        path.closeSubpath();
        break;
    }
  return path;
}

double left_of(draw::Anchor anchor, double width) {
  switch (anchor) {
    case draw::Anchor::Start:
      return 0;
    case draw::Anchor::Middle:
      return -width / 2;
    case draw::Anchor::End:
      return -width;
  }
  return 0;
}

struct ElementPainter {
  QPainter& painter;

  void operator()(const draw::Boxes& boxes) const { shape(boxes); }
  void operator()(const draw::Lines& lines) const { shape(lines); }
  void operator()(const draw::Words& words) const {
    QFont font;
    font.setFamilies({"Helvetica", "Arial", "Liberation Sans", "DejaVu Sans"});
    // Letters scale with the painter, so they are measured at a size at which hinting does not
    // distort them.
    constexpr int fine = 16;
    font.setPixelSize(static_cast<int>(words.look.size * fine));
    font.setBold(words.look.bold);
    const QString text = QString::fromStdString(words.text);
    painter.save();
    painter.translate(words.x, words.y);
    painter.rotate(words.look.turn);
    // Scenes leave room for Helvetica's letters; DejaVu's are wider.
    const bool wide = QFontInfo(font).family().startsWith("DejaVu");
    painter.scale((wide ? 0.87 : 1.0) / fine, 1.0 / fine);
    painter.setFont(font);
    painter.setPen(QColor(QString::fromStdString(words.look.fill)));
    const double width = QFontMetricsF(font, painter.device()).horizontalAdvance(text);
    painter.drawText(QPointF(left_of(words.look.anchor, width), 0), text);
    painter.restore();
  }

  template <class Shape>
  void shape(const Shape& shape) const {
    painter.setBrush(brush_of(shape.look));
    painter.setPen(pen_of(shape.look));
    painter.drawPath(path_of(shape));
  }
};

}  // namespace

void paint_scene(QPainter& painter, const draw::Scene& scene) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setRenderHint(QPainter::TextAntialiasing);
  painter.fillRect(QRectF(0, 0, scene.width, scene.height), Qt::white);
  for (const draw::Element& element : scene.elements)
    std::visit(ElementPainter{painter}, element);
  painter.restore();
}

}  // namespace pipewright::gui
