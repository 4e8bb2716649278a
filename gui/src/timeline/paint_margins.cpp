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

/// All ticks in the unit of the last one, with the figures that tell them apart.
QString tick_words(double time, double tick, double until) {
  const bool seconds = until >= 2, millis = until >= 1e-4;
  const double unit = seconds ? 1 : millis ? 1e-3 : 1e-6;
  const int figures =
      std::clamp(-static_cast<int>(std::floor(std::log10(tick / unit) + 1e-9)), 0, 9);
  return QString::number(time / unit, 'f', figures) + (seconds ? " s" : millis ? " ms" : " µs");
}

class MarginPainter {
 public:
  MarginPainter(QPainter& painter, const TimelineModel& model)
      : painter_(painter),
        model_(model),
        at_(model.layout),
        theme_(*model.theme),
        width_(model.layout.viewport.width()) {}

  void paint_headers();
  void paint_ruler();
  void paint_map(const QImage& map);
  void paint_legend();

 private:
  /// Writes into a box, and cuts words that are too long for it.
  void write(const QRectF& box, Qt::Alignment side, const QString& words,
             Qt::TextElideMode cut = Qt::ElideNone) {
    painter_.drawText(box, Qt::AlignVCenter | side,
                      cut == Qt::ElideNone ? words
                                           : painter_.fontMetrics().elidedText(
                                                 words, cut, static_cast<int>(box.width())));
  }
  void paint_header(const PlacedRow& row);
  void paint_figures(const PlacedRow& row, double top, double height);
  void paint_headings();
  void paint_column_titles();

  QPainter& painter_;
  const TimelineModel& model_;
  const Layout& at_;
  const Theme& theme_;
  double width_;
};

void MarginPainter::paint_headers() {
  const double bottom = at_.viewport.height();
  painter_.fillRect(QRectF(0, 0, at_.plot_left, bottom), theme_.panel);
  painter_.fillRect(QRectF(0, 0, width_, Layout::rows_top), theme_.panel);
  for (const auto rows : {at_.scrolled_rows(), at_.pinned_rows()})
    for (const PlacedRow& row : rows) {
      const double top = row.pinned ? Layout::rows_top : at_.scrolled_top();
      painter_.setClipRect(QRectF(0, top, width_, bottom - top));
      paint_header(row);
    }
  painter_.setClipRect(QRectF(0, at_.scrolled_top(), width_, bottom - at_.scrolled_top()));
  paint_headings();
  painter_.setClipping(false);
  paint_column_titles();
  painter_.fillRect(QRectF(0, Layout::rows_top - 1, width_, 1), theme_.line);
  painter_.fillRect(QRectF(at_.plot_left - 1, 0, 1, bottom), theme_.line);
}

void MarginPainter::paint_column_titles() {
  painter_.setPen(theme_.soft_text);
  painter_.setFont(font_of(small_size - 1));
  const auto title = [&](double left, double right, Qt::Alignment side, const QString& words) {
    write(QRectF(left, Layout::minimap_height, right - left, Layout::ruler_height), side, words);
  };
  if (model_.notes.of.empty())
    return title(10, at_.plot_left - 10, Qt::AlignLeft, "busy in view");
  title(10, at_.plot_left - Layout::busy_width, Qt::AlignRight,
        QString::fromStdString(model_.notes.title));
  title(at_.plot_left - Layout::busy_width, at_.plot_left - 10, Qt::AlignRight, "busy");
}

/// The names of groups, over the whole width.
void MarginPainter::paint_headings() {
  painter_.setFont(font_of(small_size, true));
  for (const PlacedHeading* const heading : at_.headings_in_sight()) {
    const QRectF box(0, at_.scrolled_top() + heading->top - at_.scroll, width_, heading->height);
    painter_.fillRect(box, theme_.window);
    painter_.fillRect(QRectF(0, box.bottom() - 1, box.width(), 1), theme_.line);
    painter_.setPen(theme_.text);
    write(
        box.adjusted(10, 0, -10, 0), Qt::AlignLeft,
        QString::fromStdString(model_.rows.groups.names[static_cast<std::size_t>(heading->group)]));
  }
}

/// The name of a row, how busy it is in view, and above it the name of what stands behind.
void MarginPainter::paint_header(const PlacedRow& row) {
  const double y = at_.row_y(row);
  const RowParts parts = at_.parts_of(row);
  if (parts.ghost_height >= 11) {
    painter_.setFont(font_of(small_size - 1));
    painter_.setPen(theme_.soft_text);
    write({10, y + parts.ghost_top, at_.plot_left - 20, parts.ghost_height}, Qt::AlignRight,
          QString::fromStdString(model_.tables.ghost->table().name), Qt::ElideRight);
  }
  painter_.setFont(font_of(row.height < 16 ? small_size - 2 : text_size));
  painter_.setPen(theme_.text);
  write({row.pinned ? 22.0 : 10.0, y + parts.front_top,
         at_.plot_left - at_.note_width - Layout::beside_name, parts.front_height},
        Qt::AlignLeft,
        QString::fromStdString(plan::rank_name(model_.tables.front->table(), row.rank)),
        Qt::ElideMiddle);
  if (row.pinned) {
    painter_.setBrush(theme_.selection);
    painter_.setPen(Qt::NoPen);
    painter_.drawEllipse(QPointF(13, y + row.height / 2), 3, 3);
  }
  if (row.rank == model_.marks.row)
    painter_.fillRect(QRectF(0, y + 1, 4, row.height - 2), theme_.selection);
  if (row.height >= 26)
    painter_.fillRect(QRectF(0, y + row.height - 0.5, width_, 1), theme_.line);
  paint_figures(row, y + parts.front_top, parts.front_height);
}

/// The note of a row, and how busy it is in view.
void MarginPainter::paint_figures(const PlacedRow& row, double top, double height) {
  painter_.setFont(font_of(row.height < 16 ? small_size - 2 : small_size));
  painter_.setPen(theme_.soft_text);
  const double left = at_.plot_left - Layout::busy_width;
  if (std::cmp_less(row.rank, model_.notes.of.size()))
    write({0, top, left, height}, Qt::AlignRight,
          QString::fromStdString(model_.notes.of[static_cast<std::size_t>(row.rank)]));
  const auto [first, last] = model_.seen();
  if (last <= first)
    return;
  const double busy = model_.tables.front->busy(row.rank, first, last) / (last - first);
  write({left, top, Layout::busy_width - 10, height}, Qt::AlignRight,
        QString::number(100 * busy, 'f', 0) + " %");
}

void MarginPainter::paint_ruler() {
  const double tick = round_tick(ticks_apart * at_.scale.per_pixel);
  const double from = std::ceil(std::max(0.0, at_.scale.first) / tick) * tick;
  const double until =
      std::min(model_.tables.front->length() * 1.0000001, at_.scale.time(at_.plot_width()));
  painter_.setFont(font_of(small_size));
  painter_.setPen(theme_.soft_text);
  for (double time = from; time <= until; time += tick) {
    const double x = at_.x(time);
    painter_.fillRect(QRectF(x, Layout::rows_top - 6, 1, 5), theme_.soft_text);
    const QString words = tick_words(std::abs(time) < tick / 2 ? 0 : time, tick, until);
    if (x + 4 + painter_.fontMetrics().horizontalAdvance(words) < width_)
      painter_.drawText(QPointF(x + 4, Layout::rows_top - 8), words);
  }
}

void MarginPainter::paint_map(const QImage& map) {
  const double plot = at_.plot_width(), length = model_.tables.front->length();
  const double left = std::clamp(at_.scale.first / length, 0.0, 1.0) * plot;
  const double right = std::clamp(at_.scale.time(plot) / length, 0.0, 1.0) * plot;
  const double top = gap / 2, height = Layout::minimap_height - gap;
  painter_.drawImage(QPointF(at_.plot_left, top), map);
  QColor shade = theme_.window;
  shade.setAlphaF(0.72F);
  painter_.fillRect(QRectF(at_.plot_left, top, left, height), shade);
  painter_.fillRect(QRectF(at_.plot_left + right, top, plot - right, height), shade);
  painter_.setPen(QPen(theme_.accent, 1));
  painter_.setBrush(Qt::NoBrush);
  painter_.drawRect(QRectF(at_.plot_left + left, top, std::max(2.0, right - left), height));
}

void MarginPainter::paint_legend() {
  const double top = at_.rows_bottom(), row = Layout::legend_height;
  painter_.fillRect(QRectF(0, top, width_, at_.viewport.height() - top), theme_.panel);
  painter_.fillRect(QRectF(0, top, width_, 1), theme_.line);
  painter_.setFont(font_of(small_size));
  const std::vector<LegendEntry> entries = model_.legend_entries();
  for (std::size_t i = 0; i < std::min(entries.size(), at_.legend.places.size()); ++i) {
    const LegendEntry& entry = entries[i];
    double x = at_.legend.places[i].x();
    const double y = top + at_.legend.places[i].y() * row;
    if (entry.height > 0) {
      painter_.fillRect(QRectF(x, y + (row - entry.height) / 2, 11, entry.height), entry.colour);
      x += legend_box;
    }
    painter_.setPen(entry.height > 0 ? theme_.soft_text : theme_.text);
    write(QRectF(x, y, width_, row), Qt::AlignLeft, entry.words);
  }
}

}  // namespace

void paint_margins(QPainter& painter, const TimelineModel& model, const QImage& map) {
  MarginPainter margins(painter, model);
  margins.paint_headers();
  margins.paint_ruler();
  margins.paint_map(map);
  margins.paint_legend();
}

}  // namespace pipewright::gui
