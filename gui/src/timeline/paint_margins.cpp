#include <algorithm>
#include <cmath>
#include <utility>

#include "pipewright/gui/timeline/timeline_painters.hpp"

namespace pipewright::gui {
namespace {

using Layout = TimelineLayout;

constexpr int ticks_apart = 96;  // pixels, at least

double round_tick(double least) {
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double step : {1.0, 2.0, 5.0})
    if (step * power >= least)
      return step * power;
  return 10 * power;
}

/// Formats all ticks in the unit of the last one, with enough digits to distinguish them.
QString tick_words(double time, double tick, double until) {
  const bool seconds = until >= 2, millis = until >= 1e-4;
  const double unit = seconds ? 1 : millis ? 1e-3 : 1e-6;
  const int figures =
      std::clamp(-static_cast<int>(std::floor(std::log10(tick / unit) + 1e-9)), 0, 9);
  return QString::number(time / unit, 'f', figures) + (seconds ? " s" : millis ? " ms" : " µs");
}

struct MarginPainter {
  QPainter& painter;
  const TimelineModel& model;
  const Layout& at = model.layout;
  const Theme& theme = *model.theme;
  const double width = at.viewport.width();

  /// Writes into a box, and shortens text that does not fit.
  void write(const QRectF& box, Qt::Alignment side, const QString& words,
             Qt::TextElideMode cut = Qt::ElideNone) {
    painter.drawText(box, Qt::AlignVCenter | side,
                     cut == Qt::ElideNone ? words
                                          : painter.fontMetrics().elidedText(
                                                words, cut, static_cast<int>(box.width())));
  }

  void paint_headers() {
    const double bottom = at.viewport.height();
    painter.fillRect(QRectF(0, 0, at.plot_left, bottom), theme.panel);
    painter.fillRect(QRectF(0, 0, width, Layout::rows_top), theme.panel);
    for (const auto rows : {at.scrolled_rows(), at.pinned_rows()})
      for (const PlacedRow& row : rows) {
        const double top = row.pinned ? Layout::rows_top : at.scrolled_top();
        painter.setClipRect(QRectF(0, top, width, bottom - top));
        paint_header(row);
      }
    painter.setClipRect(QRectF(0, at.scrolled_top(), width, bottom - at.scrolled_top()));
    paint_headings();
    painter.setClipping(false);
    paint_column_titles();
    painter.fillRect(QRectF(0, Layout::rows_top - 1, width, 1), theme.line);
    painter.fillRect(QRectF(at.plot_left - 1, 0, 1, bottom), theme.line);
  }

  void paint_column_titles() {
    painter.setPen(theme.soft_text);
    painter.setFont(font_of(small_size - 1));
    const auto title = [&](double left, double right, Qt::Alignment side, const QString& words) {
      write(QRectF(left, Layout::minimap_height, right - left, Layout::ruler_height), side, words);
    };
    if (model.notes.of.empty())
      return title(10, at.plot_left - 10, Qt::AlignLeft, "busy in view");
    title(10, at.plot_left - Layout::busy_width, Qt::AlignRight,
          QString::fromStdString(model.notes.title));
    title(at.plot_left - Layout::busy_width, at.plot_left - 10, Qt::AlignRight, "busy");
  }

  /// Paints the names of groups, over the whole width.
  void paint_headings() {
    painter.setFont(font_of(small_size, true));
    for (const PlacedHeading* const heading : at.headings_in_sight()) {
      const QRectF box(0, at.scrolled_top() + heading->top - at.scroll, width, heading->height);
      painter.fillRect(box, theme.window);
      painter.fillRect(QRectF(0, box.bottom() - 1, box.width(), 1), theme.line);
      painter.setPen(theme.text);
      write(box.adjusted(10, 0, -10, 0), Qt::AlignLeft,
            QString::fromStdString(
                model.rows.groups.names[static_cast<std::size_t>(heading->group)]));
    }
  }

  /// Paints the name of a row, how busy it is in view, and above it the name of the ghost.
  void paint_header(const PlacedRow& row) {
    const double y = at.row_y(row);
    const RowParts parts = at.parts_of(row);
    if (parts.ghost_height >= 11) {
      painter.setFont(font_of(small_size - 1));
      painter.setPen(theme.soft_text);
      write({10, y + parts.ghost_top, at.plot_left - 20, parts.ghost_height}, Qt::AlignRight,
            QString::fromStdString(model.tables.ghost->table().name), Qt::ElideRight);
    }
    painter.setFont(font_of(row.height < 16 ? small_size - 2 : text_size));
    painter.setPen(theme.text);
    write({row.pinned ? 22.0 : 10.0, y + parts.front_top,
           at.plot_left - at.note_width - Layout::beside_name, parts.front_height},
          Qt::AlignLeft,
          QString::fromStdString(plan::rank_name(model.tables.front->table(), row.rank)),
          Qt::ElideMiddle);
    if (row.pinned) {
      painter.setBrush(theme.selection);
      painter.setPen(Qt::NoPen);
      painter.drawEllipse(QPointF(13, y + row.height / 2), 3, 3);
    }
    if (row.rank == model.marks.row)
      painter.fillRect(QRectF(0, y + 1, 4, row.height - 2), theme.selection);
    if (row.height >= 26)
      painter.fillRect(QRectF(0, y + row.height - 0.5, width, 1), theme.line);
    paint_figures(row, y + parts.front_top, parts.front_height);
  }

  /// Paints the note of a row, and how busy it is in view.
  void paint_figures(const PlacedRow& row, double top, double height) {
    painter.setFont(font_of(row.height < 16 ? small_size - 2 : small_size));
    painter.setPen(theme.soft_text);
    const double left = at.plot_left - Layout::busy_width;
    if (std::cmp_less(row.rank, model.notes.of.size()))
      write({0, top, left, height}, Qt::AlignRight,
            QString::fromStdString(model.notes.of[static_cast<std::size_t>(row.rank)]));
    const auto [first, last] = model.seen();
    if (last <= first)
      return;
    const double busy = model.tables.front->busy(row.rank, first, last) / (last - first);
    write({left, top, Layout::busy_width - 10, height}, Qt::AlignRight,
          QString::number(100 * busy, 'f', 0) + " %");
  }

  void paint_ruler() {
    const double tick = round_tick(ticks_apart * at.scale.per_pixel);
    const double from = std::ceil(std::max(0.0, at.scale.first) / tick) * tick;
    const double until =
        std::min(model.tables.front->length() * 1.0000001, at.scale.time(at.plot_width()));
    painter.setFont(font_of(small_size));
    painter.setPen(theme.soft_text);
    for (double time = from; time <= until; time += tick) {
      const double x = at.x(time);
      painter.fillRect(QRectF(x, Layout::rows_top - 6, 1, 5), theme.soft_text);
      const QString words = tick_words(std::abs(time) < tick / 2 ? 0 : time, tick, until);
      if (x + 4 + painter.fontMetrics().horizontalAdvance(words) < width)
        painter.drawText(QPointF(x + 4, Layout::rows_top - 8), words);
    }
  }

  void paint_map(const QImage& map) {
    const double plot = at.plot_width(), length = model.tables.front->length();
    const double left = std::clamp(at.scale.first / length, 0.0, 1.0) * plot;
    const double right = std::clamp(at.scale.time(plot) / length, 0.0, 1.0) * plot;
    const double top = gap / 2, height = Layout::minimap_height - gap;
    painter.drawImage(QPointF(at.plot_left, top), map);
    QColor shade = theme.window;
    shade.setAlphaF(0.72F);
    painter.fillRect(QRectF(at.plot_left, top, left, height), shade);
    painter.fillRect(QRectF(at.plot_left + right, top, plot - right, height), shade);
    painter.setPen(QPen(theme.accent, 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(QRectF(at.plot_left + left, top, std::max(2.0, right - left), height));
  }

  void paint_legend() {
    const double top = at.rows_bottom(), row = Layout::legend_height;
    painter.fillRect(QRectF(0, top, width, at.viewport.height() - top), theme.panel);
    painter.fillRect(QRectF(0, top, width, 1), theme.line);
    painter.setFont(font_of(small_size));
    const std::vector<LegendEntry> entries = model.legend_entries();
    for (std::size_t i = 0; i < std::min(entries.size(), at.legend.places.size()); ++i) {
      const LegendEntry& entry = entries[i];
      double x = at.legend.places[i].x();
      const double y = top + at.legend.places[i].y() * row;
      if (entry.height > 0) {
        painter.fillRect(QRectF(x, y + (row - entry.height) / 2, 11, entry.height), entry.color);
        x += legend_box;
      }
      painter.setPen(entry.height > 0 ? theme.soft_text : theme.text);
      write(QRectF(x, y, width, row), Qt::AlignLeft, entry.words);
    }
  }
};

}  // namespace

void paint_margins(QPainter& painter, const TimelineModel& model, const QImage& map) {
  MarginPainter margins{painter, model};
  margins.paint_headers();
  margins.paint_ruler();
  margins.paint_map(map);
  margins.paint_legend();
}

}  // namespace pipewright::gui
