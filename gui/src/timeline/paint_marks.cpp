#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "pipewright/gui/look/words.hpp"
#include "pipewright/gui/timeline/timeline_painters.hpp"

namespace pipewright::gui {
namespace {

constexpr std::size_t most_arrows = 500;
constexpr std::size_t most_critical = 200'000;

QColor faded(QColor color, float alpha) {
  color.setAlphaF(alpha);
  return color;
}

/// Returns the y of the line below each rank's compute; far below 0: the rank is not shown.
std::vector<double> lines_under_compute(const TimelineModel& model) {
  const PaintedTable& table = *model.tables.front;
  std::vector<double> lines(static_cast<std::size_t>(table.table().ranks), -1e9);
  for (const PlacedRow& row : model.layout.rows.rows) {
    const RowParts parts = model.layout.parts_of(row);
    const auto bands = bands_of(table, row.rank, parts.front_top, parts.front_height);
    const double bottom = bands.empty() ? row.height : bands.front().top + bands.front().height;
    lines[static_cast<std::size_t>(row.rank)] = model.layout.row_y(row) + bottom - 2;
  }
  return lines;
}

/// Returns one line below the bars of the path, which goes up or down where the path changes ranks.
QPainterPath critical_line(const TimelineModel& model) {
  const TimelineLayout& at = model.layout;
  const plan::EventTable& table = model.tables.front->table();
  const std::vector<double> lines = lines_under_compute(model);
  const double seen = at.plot_width();
  QPainterPath path;
  bool begun = false;
  for (const std::uint64_t event : table.critical) {
    const double x0 = at.scale.x(table.start[event]), x1 = at.scale.x(table.end[event]);
    const plan::EventTrack& of = table.tracks[model.tables.front->track_of(event)];
    const double y = lines[static_cast<std::size_t>(of.rank)];
    if (y < -1e8 || x1 < -seen || x0 > 2 * seen)
      continue;
    const QPointF from(at.plot_left + x0, y), to(at.plot_left + x1, y);
    if (!begun)
      path.moveTo(from);
    else if (of.row != plan::Row::Receive)
      path.lineTo(from);
    begun = true;
    if (of.row != plan::Row::Send)
      path.lineTo(to);
  }
  return path;
}

void paint_critical(QPainter& painter, const TimelineModel& model) {
  const auto critical = model.tables.front->table().critical;
  if (!model.show_critical || critical.empty() || critical.size() > most_critical)
    return;
  const QPainterPath path = critical_line(model);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(
      QPen(faded(model.theme->plot, 0.8F), 4.5, Qt::SolidLine, Qt::FlatCap, Qt::RoundJoin));
  painter.drawPath(path);
  painter.setPen(QPen(model.theme->text, 2, Qt::SolidLine, Qt::FlatCap, Qt::RoundJoin));
  painter.drawPath(path);
  painter.setRenderHint(QPainter::Antialiasing, false);
}

void paint_hovered(QPainter& painter, const TimelineModel& model) {
  const Picked& hovered = model.marks.hovered;
  const QRectF box = model.rect_of(hovered);
  if (hovered == model.marks.picked || box.isNull())
    return;
  if (std::holds_alternative<PickedEvent>(hovered)) {
    painter.setPen(QPen(faded(model.theme->text, 0.75F), 1.5));
    painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5));
  } else {
    painter.setPen(QPen(faded(model.theme->text, 0.4F), 1, Qt::DashLine));
    painter.drawRect(box.adjusted(0, 2, 0, -2));
  }
}

void paint_arrow(QPainter& painter, const QColor& color, const QRectF& from, const QRectF& to) {
  // The waiting event, such as a receive, may have begun long before: the arrow ends at the time
  // when it continues.
  const QPointF begin(from.right(), from.center().y());
  const QPointF end(std::clamp(begin.x(), to.left(), to.right()), to.center().y());
  const double across = end.x() - begin.x();
  QPainterPath path(begin);
  if (across > 24)
    path.cubicTo(begin + QPointF(across / 2, 0), end - QPointF(across / 2, 0), end);
  else
    path.lineTo(end);
  painter.drawPath(path);
  const double length = std::hypot(end.x() - begin.x(), end.y() - begin.y());
  if (length < 8)
    return;
  const QPointF along = across > 24 ? QPointF(1, 0) : (end - begin) / length;
  const QPointF beside(-along.y(), along.x());
  painter.setBrush(color);
  painter.drawPolygon(
      QPolygonF{end, end - along * 7 + beside * 3.5, end - along * 7 - beside * 3.5});
  painter.setBrush(Qt::NoBrush);
}

void paint_arrows(QPainter& painter, const TimelineModel& model) {
  const auto& arrows = model.marks.arrows;
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(model.theme->selection, 1.6));
  for (std::size_t i = 0; i < std::min(arrows.size(), most_arrows); ++i) {
    const QRectF from = model.event_rect(arrows[i].from), to = model.event_rect(arrows[i].to);
    if (!from.isNull() && !to.isNull())
      paint_arrow(painter, model.theme->selection, from, to);
  }
  painter.setRenderHint(QPainter::Antialiasing, false);
}

void paint_area(QPainter& painter, const TimelineModel& model, const PickedArea& area) {
  const QRectF box = model.rect_of(area);
  const Theme& theme = *model.theme;
  painter.fillRect(box, faded(theme.selection, 0.16F));
  painter.setPen(QPen(theme.selection, 1.5));
  painter.drawLine(box.topLeft(), box.bottomLeft());
  painter.drawLine(box.topRight(), box.bottomRight());
  const double length = area.last - area.first;
  const QString words = QString("%1 · %2").arg(
      time_words(length), percent_words(length / model.tables.front->length()));
  painter.setFont(font_of(small_size, true));
  QRectF label(0, 0, painter.fontMetrics().horizontalAdvance(words) + 12, 18);
  label.moveCenter({std::clamp(box.center().x(), model.layout.plot_left + label.width() / 2,
                               model.layout.viewport.width() - label.width() / 2),
                    std::max(TimelineLayout::rows_top + 10.0, box.top() + 10)});
  painter.setPen(Qt::NoPen);
  painter.setBrush(theme.selection);
  painter.drawRoundedRect(label, 4, 4);
  painter.setPen(QColor("#1f2630"));
  painter.drawText(label, Qt::AlignCenter, words);
}

void paint_picked(QPainter& painter, const TimelineModel& model) {
  const Theme& theme = *model.theme;
  painter.setPen(QPen(theme.selection, 1.5));
  for (const std::uint64_t event : model.marks.highlight)
    painter.drawRect(model.event_rect(event).adjusted(0.5, 0.5, -0.5, -0.5));
  const QRectF box = model.rect_of(model.marks.picked);
  if (box.isNull())
    return;
  if (std::holds_alternative<PickedEvent>(model.marks.picked)) {
    painter.setPen(QPen(theme.plot, 4));
    painter.drawRect(box);
    painter.setPen(QPen(theme.selection, 2.5));
    painter.drawRect(box);
  } else if (std::holds_alternative<PickedIdle>(model.marks.picked)) {
    painter.setPen(QPen(theme.selection, 2, Qt::DashLine));
    painter.drawRect(box.adjusted(1, 2, -1, -2));
  }
}

}  // namespace

void paint_marks(QPainter& painter, const TimelineModel& model) {
  painter.setBrush(Qt::NoBrush);
  paint_critical(painter, model);
  paint_hovered(painter, model);
  paint_picked(painter, model);
  paint_arrows(painter, model);
  if (const auto* area = std::get_if<PickedArea>(&model.marks.picked);
      area != nullptr && !area->ranks.empty())
    paint_area(painter, model, *area);
}

}  // namespace pipewright::gui
