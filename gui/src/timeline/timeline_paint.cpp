// How the timeline is painted: rows into an image that is kept as long as nothing moves, and over
// it what changes with the mouse.

#include <QPainter>
#include <QPainterPath>
#include <QScrollBar>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <thread>
#include <tuple>

#include "pipewright/gui/look/words.hpp"
#include "pipewright/gui/timeline/timeline_view.hpp"
#include "pipewright/plan/program/instruction.hpp"

namespace pipewright::gui {
namespace {

constexpr double narrowest_label = 14;
constexpr std::size_t most_labels = 600;
constexpr std::size_t worth_a_thread = 8;  // rows
constexpr std::size_t most_arrows = 500;
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

bool is_light(QRgb colour) {
  return 0.299 * qRed(colour) + 0.587 * qGreen(colour) + 0.114 * qBlue(colour) > 150;
}

/// The microbatch or the number of a step where there is little room, the whole name where there is
/// more.
QString label_of(const std::string& name, double width, const QFontMetricsF& metrics) {
  const auto instruction = plan::parse_instruction(name);
  const QString whole = QString::fromStdString(name);
  if (metrics.horizontalAdvance(whole) + 8 <= width)
    return whole;
  if (instruction) {
    const QString number =
        instruction->microbatch >= 0 ? QString::number(instruction->microbatch) : QString();
    return metrics.horizontalAdvance(number) + 4 <= width ? number : QString();
  }
  if (const auto step = plan::step_number(name)) {
    const QString number = QString::number(*step);
    return metrics.horizontalAdvance(number) + 4 <= width ? number : QString();
  }
  return metrics.elidedText(whole, Qt::ElideRight, width - 8);
}

}  // namespace

ClassColours TimelineView::colours_for(plan::Row row, bool ghost) const {
  ClassColours colours;
  if (heat_ && !ghost)
    return colours_of(theme_->heat);
  switch (row) {
    case plan::Row::Compute:
      colours = colours_of(theme_->kinds);
      break;
    case plan::Row::Send:
      colours = colours_of(theme_->send);
      break;
    case plan::Row::Receive:
      colours = colours_of(theme_->receive);
      break;
    case plan::Row::Reduce:
      colours = colours_of(theme_->reduce);
      break;
  }
  if (ghost)
    for (QRgb& fill : colours.fill)
      fill = mixed(fill, theme_->plot.rgb(), 0.45);
  return colours;
}

void TimelineView::render_table(const PaintedTable& table, const PlacedRow& row, double top,
                                double height, bool ghost, double scale) {
  if (row.rank >= table.table().ranks || height < 1)
    return;
  const TimeScale pixels{scale_.first, scale_.per_pixel / scale};
  const auto bands = bands_of(table, row.rank, 0, height);
  const ClassColours causes = colours_of(theme_->causes);
  for (const TrackBand& at : bands) {
    const plan::Row kind = table.table().tracks[at.track].row;
    const bool compute = kind == plan::Row::Compute;
    const int band_top = static_cast<int>(std::lround((top + at.top) * scale));
    const int band_bottom = static_cast<int>(std::lround((top + at.top + at.height) * scale));
    const Band band{static_cast<int>(header_width_ * scale), static_cast<int>(plot_width() * scale),
                    band_top, std::max(1, band_bottom - band_top)};
    const QRgb blank = compute ? theme_->idle.rgb() : theme_->plot.rgb();
    // Causes are of a rank, and many tracks of it would each repeat them.
    const bool with_causes = compute && bands.front().track == at.track && !ghost;
    thread_local RowRaster raster;  // rows are painted by several threads
    const auto& wide = raster.paint(image_, band, pixels,
                                    {table.sums(at.track), colours_for(kind, ghost),
                                     with_causes ? &table.idle(row.rank) : nullptr, causes, blank,
                                     theme_->plot.rgb(), table.length(), narrowest_label * scale});
    if (at.height < 11 || (ghost && overlaid_))
      continue;
    const std::lock_guard lock(labels_mutex_);
    for (const WideEvent& event : wide) {
      const std::uint8_t c = table.sums(at.track).class_of(event.event);
      labels_.push_back(
          {{header_width_ + event.x / scale, top + at.top, event.width / scale, at.height},
           table.table().tracks[at.track].begin + event.event,
           ghost,
           colours_for(kind, ghost).fill[c]});
    }
  }
}

void TimelineView::render_overlaid(const PlacedRow& row, double scale) {
  const double y = row_y(row);
  const RowParts parts = parts_of(row);
  const auto top = static_cast<int>(std::lround((y + parts.front_top) * scale));
  const auto bottom =
      static_cast<int>(std::lround((y + parts.front_top + parts.front_height) * scale));
  const int first = std::max(0, top), last = std::min(image_.height(), bottom);
  render_table(*ghost_, row, y + parts.front_top, parts.front_height, true, scale);
  std::vector<QRgb> behind;
  for (int line = first; line < last; ++line) {
    const auto* pixels = reinterpret_cast<const QRgb*>(image_.constScanLine(line));
    behind.insert(behind.end(), pixels, pixels + image_.width());
  }
  render_table(*front_, row, y + parts.front_top, parts.front_height, false, scale);
  const QRgb* other = behind.data();
  for (int line = first; line < last; ++line) {
    auto* pixels = reinterpret_cast<QRgb*>(image_.scanLine(line));
    for (int x = 0; x < image_.width(); ++x, ++other)  // the mean of each colour
      pixels[x] = (((pixels[x] ^ *other) & 0xfefefefeU) >> 1) + (pixels[x] & *other);
  }
}

void TimelineView::render_row(const PlacedRow& row, double scale) {
  if (ghost_ && overlaid_ && !row.collapsed) {
    render_overlaid(row, scale);
    return;
  }
  const double y = row_y(row);
  const RowParts parts = parts_of(row);
  if (parts.ghost_height > 0)
    render_table(*ghost_, row, y + parts.ghost_top, parts.ghost_height, true, scale);
  render_table(*front_, row, y + parts.front_top, parts.front_height, false, scale);
}

void TimelineView::render() {
  const double scale = viewport()->devicePixelRatioF();
  const QSize size = (QSizeF(viewport()->size()) * scale).toSize();
  if (image_.size() != size)
    image_ = QImage(size, QImage::Format_RGB32);
  image_.setDevicePixelRatio(1);
  image_.fill(theme_->plot);
  labels_.clear();
  const auto pinned = pinned_rows(), others = scrolled_rows();
  std::atomic<std::size_t> next = 0;
  const auto render_others = [&] {
    for (std::size_t at = next++; at < others.size(); at = next++)
      render_row(others[at], scale);
  };
  image_.detach();
  {
    std::vector<std::jthread> helpers;
    if (others.size() >= worth_a_thread)
      for (unsigned core = 1; core < std::min(4U, std::thread::hardware_concurrency()); ++core)
        helpers.emplace_back(render_others);
    render_others();
  }
  // Pinned rows come last and cover what scrolls beneath them.
  for (const PlacedRow& row : pinned)
    if (row_y(row) <= viewport()->height())
      render_row(row, scale);
  // The order must not depend on which thread was first.
  std::sort(labels_.begin(), labels_.end(), [](const Label& a, const Label& b) {
    return std::tuple(a.box.top(), a.box.left()) < std::tuple(b.box.top(), b.box.left());
  });
  if (labels_.size() > most_labels)
    labels_.resize(most_labels);
  painted_ = {.rows = pinned.size() + others.size(),
              .headings = headings_in_sight().size(),
              .labels = labels_.size()};
  image_.setDevicePixelRatio(scale);
  dirty_ = false;
}

void TimelineView::render_map(double scale) {
  const int width = static_cast<int>(plot_width() * scale);
  const int height = static_cast<int>((minimap_height - gap) * scale);
  map_ = QImage(width, height, QImage::Format_RGB32);
  map_.fill(theme_->plot);
  const TimeScale all = fitted(0, front_->length(), width);
  const int ranks = static_cast<int>(layout_.rows.size());
  // The map has the order of the rows; where there are more rows than lines, it has some of them.
  const int shown = std::min(ranks, height);
  for (int i = 0; i < shown; ++i) {
    const int rank = layout_
                         .rows[static_cast<std::size_t>(i) * static_cast<std::size_t>(ranks) /
                               static_cast<std::size_t>(shown)]
                         .rank;
    const int top = i * height / shown, bottom = (i + 1) * height / shown;
    const auto tracks = front_->tracks_of(rank);
    for (std::size_t track = tracks.begin; track < tracks.end; ++track) {
      if (front_->table().tracks[track].row != plan::Row::Compute)
        continue;
      ClassColours colours = colours_for(plan::Row::Compute, false);
      colours.hatch.fill(Hatch::None);
      raster_.paint(map_, {0, width, top, std::max(1, bottom - top - (bottom - top > 3 ? 1 : 0))},
                    all,
                    {front_->sums(track),
                     colours,
                     nullptr,
                     {},
                     theme_->idle.rgb(),
                     theme_->plot.rgb(),
                     front_->length()});
      break;
    }
  }
  map_.setDevicePixelRatio(scale);
  map_dirty_ = false;
}

void TimelineView::paint_labels(QPainter& painter) const {
  const QFont large = font_of(small_size), small = font_of(small_size - 2);
  const QFontMetricsF large_metrics(large), small_metrics(small);
  for (const Label& label : labels_) {
    const bool low = label.box.height() < 15;
    const PaintedTable& table = label.ghost ? *ghost_ : *front_;
    const QString text = label_of(table.table().name_at(label.event), label.box.width(),
                                  low ? small_metrics : large_metrics);
    if (text.isEmpty())
      continue;
    painter.setFont(low ? small : large);
    painter.setPen(is_light(label.fill) ? QColor("#1f2630") : QColor("#ffffff"));
    painter.drawText(label.box, Qt::AlignCenter, text);
  }
}

void TimelineView::paint_headers(QPainter& painter) const {
  const double bottom = viewport()->height();
  painter.fillRect(QRectF(0, 0, header_width_, bottom), theme_->panel);
  painter.fillRect(QRectF(0, 0, viewport()->width(), rows_top), theme_->panel);
  for (const auto rows : {scrolled_rows(), pinned_rows()})
    for (const PlacedRow& row : rows) {
      const double top = row.pinned ? rows_top : scrolled_top();
      painter.setClipRect(QRectF(0, top, viewport()->width(), bottom - top));
      paint_header(painter, row);
    }
  painter.setClipRect(QRectF(0, scrolled_top(), viewport()->width(), bottom - scrolled_top()));
  paint_headings(painter);
  painter.setClipping(false);
  paint_column_titles(painter);
  painter.fillRect(QRectF(0, rows_top - 1, viewport()->width(), 1), theme_->line);
  painter.fillRect(QRectF(header_width_ - 1, 0, 1, bottom), theme_->line);
}

void TimelineView::paint_column_titles(QPainter& painter) const {
  painter.setPen(theme_->soft_text);
  painter.setFont(font_of(small_size - 1));
  const auto write = [&](double left, double right, Qt::Alignment side, const QString& words) {
    painter.drawText(QRectF(left, minimap_height, right - left, ruler_height),
                     Qt::AlignVCenter | side, words);
  };
  if (notes_.of.empty())
    return write(10, header_width_ - 10, Qt::AlignLeft, "busy in view");
  write(10, header_width_ - busy_width, Qt::AlignRight, QString::fromStdString(notes_.title));
  write(header_width_ - busy_width, header_width_ - 10, Qt::AlignRight, "busy");
}

/// The names of groups, over the whole width.
void TimelineView::paint_headings(QPainter& painter) const {
  painter.setFont(font_of(small_size, true));
  for (const PlacedHeading* const heading : headings_in_sight()) {
    const QRectF box(0, scrolled_top() + heading->top - verticalScrollBar()->value(),
                     viewport()->width(), heading->height);
    painter.fillRect(box, theme_->window);
    painter.fillRect(QRectF(0, box.bottom() - 1, box.width(), 1), theme_->line);
    painter.setPen(theme_->text);
    painter.drawText(
        box.adjusted(10, 0, -10, 0), Qt::AlignVCenter | Qt::AlignLeft,
        QString::fromStdString(state_.groups.names[static_cast<std::size_t>(heading->group)]));
  }
}

/// The name of a row, how busy it is in view, and above it the name of what stands behind.
void TimelineView::paint_header(QPainter& painter, const PlacedRow& row) const {
  const double y = row_y(row);
  const RowParts parts = parts_of(row);
  const QRectF name(row.pinned ? 22 : 10, y + parts.front_top,
                    header_width_ - note_width_ - beside_name, parts.front_height);
  const auto write = [&](const QRectF& box, Qt::Alignment side, const QString& words,
                         Qt::TextElideMode cut) {
    painter.drawText(box, Qt::AlignVCenter | side,
                     painter.fontMetrics().elidedText(words, cut, static_cast<int>(box.width())));
  };
  if (parts.ghost_height >= 11) {
    painter.setFont(font_of(small_size - 1));
    painter.setPen(theme_->soft_text);
    write({10, y + parts.ghost_top, header_width_ - 20, parts.ghost_height}, Qt::AlignRight,
          QString::fromStdString(ghost_->table().name), Qt::ElideRight);
  }
  painter.setFont(font_of(row.height < 16 ? small_size - 2 : text_size));
  painter.setPen(theme_->text);
  write(name, Qt::AlignLeft, QString::fromStdString(plan::rank_name(front_->table(), row.rank)),
        Qt::ElideMiddle);
  if (row.pinned) {
    painter.setBrush(theme_->selection);
    painter.setPen(Qt::NoPen);
    painter.drawEllipse(QPointF(13, y + row.height / 2), 3, 3);
  }
  if (row.rank == marked_)
    painter.fillRect(QRectF(0, y + 1, 4, row.height - 2), theme_->selection);
  if (row.height >= 26)
    painter.fillRect(QRectF(0, y + row.height - 0.5, viewport()->width(), 1), theme_->line);
  painter.setFont(font_of(row.height < 16 ? small_size - 2 : small_size));
  painter.setPen(theme_->soft_text);
  if (std::cmp_less(row.rank, notes_.of.size()))
    painter.drawText(QRectF(0, name.top(), header_width_ - busy_width, name.height()),
                     Qt::AlignVCenter | Qt::AlignRight,
                     QString::fromStdString(notes_.of[static_cast<std::size_t>(row.rank)]));
  const double first = std::max(0.0, scale_.first);
  const double last = std::min(front_->length(), scale_.time(plot_width()));
  if (last <= first)
    return;
  const double busy = front_->busy(row.rank, first, last) / (last - first);
  painter.drawText(QRectF(header_width_ - busy_width, name.top(), busy_width - 10, name.height()),
                   Qt::AlignVCenter | Qt::AlignRight, QString::number(100 * busy, 'f', 0) + " %");
}

void TimelineView::paint_ruler(QPainter& painter) const {
  const double tick = round_tick(ticks_apart * scale_.per_pixel);
  const double from = std::ceil(std::max(0.0, scale_.first) / tick) * tick;
  const double until = std::min(front_->length() * 1.0000001, scale_.time(plot_width()));
  painter.setFont(font_of(small_size));
  for (double time = from; time <= until; time += tick) {
    const double x = header_width_ + scale_.x(time);
    painter.fillRect(QRectF(x, rows_top - 6, 1, 5), theme_->soft_text);
    painter.setPen(theme_->soft_text);
    const QString words = tick_words(std::abs(time) < tick / 2 ? 0 : time, tick, until);
    if (x + 4 + painter.fontMetrics().horizontalAdvance(words) < viewport()->width())
      painter.drawText(QPointF(x + 4, rows_top - 8), words);
  }
}

void TimelineView::paint_map_frame(QPainter& painter) const {
  painter.drawImage(QPointF(header_width_, gap / 2), map_);
  const double left = std::clamp(scale_.first / front_->length(), 0.0, 1.0) * plot_width();
  const double right =
      std::clamp(scale_.time(plot_width()) / front_->length(), 0.0, 1.0) * plot_width();
  const double top = gap / 2, height = minimap_height - gap;
  QColor shade = theme_->window;
  shade.setAlphaF(0.72F);
  painter.fillRect(QRectF(header_width_, top, left, height), shade);
  painter.fillRect(QRectF(header_width_ + right, top, plot_width() - right, height), shade);
  painter.setPen(QPen(theme_->accent, 1));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(QRectF(header_width_ + left, top, std::max(2.0, right - left), height));
}

/// Where the line under the compute of a rank lies; below 0: the rank is not shown.
std::vector<double> TimelineView::lines_under_compute() const {
  std::vector<double> lines(static_cast<std::size_t>(front_->table().ranks), -1e9);
  for (const PlacedRow& row : layout_.rows) {
    const RowParts parts = parts_of(row);
    const auto bands = bands_of(*front_, row.rank, parts.front_top, parts.front_height);
    const double bottom = bands.empty() ? row.height : bands.front().top + bands.front().height;
    lines[static_cast<std::size_t>(row.rank)] = row_y(row) + bottom - 2;
  }
  return lines;
}

/// One line under the bars of the path, up or down where it crosses to another rank.
QPainterPath TimelineView::critical_line() const {
  const plan::EventTable& table = front_->table();
  const std::vector<double> lines = lines_under_compute();
  const double seen = plot_width();
  QPainterPath path;
  bool begun = false;
  for (const std::uint64_t event : table.critical) {
    const double x0 = scale_.x(table.start[event]), x1 = scale_.x(table.end[event]);
    const plan::EventTrack& of = table.tracks[front_->track_of(event)];
    const double y = lines[static_cast<std::size_t>(of.rank)];
    if (y < -1e8 || x1 < -seen || x0 > 2 * seen)
      continue;
    const QPointF from(header_width_ + x0, y), to(header_width_ + x1, y);
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

void TimelineView::paint_critical(QPainter& painter) const {
  constexpr std::size_t most_critical = 200'000;
  const auto critical = front_->table().critical;
  if (!show_critical_ || critical.empty() || critical.size() > most_critical)
    return;
  const QPainterPath path = critical_line();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setBrush(Qt::NoBrush);
  QColor halo = theme_->plot;
  halo.setAlphaF(0.8F);
  painter.setPen(QPen(halo, 4.5, Qt::SolidLine, Qt::FlatCap, Qt::RoundJoin));
  painter.drawPath(path);
  painter.setPen(QPen(theme_->text, 2, Qt::SolidLine, Qt::FlatCap, Qt::RoundJoin));
  painter.drawPath(path);
  painter.setRenderHint(QPainter::Antialiasing, false);
}

void TimelineView::paint_area(QPainter& painter) const {
  const auto* area = std::get_if<PickedArea>(&picked_);
  if (area == nullptr || area->ranks.empty())
    return;
  QRectF box;
  for (const int rank : area->ranks)
    box = box.united(row_rect(rank));
  const double left = header_width_ + scale_.x(area->first),
               right = header_width_ + scale_.x(area->last);
  box.setLeft(left);
  box.setRight(right);
  QColor wash = theme_->selection;
  wash.setAlphaF(0.16F);
  painter.fillRect(box, wash);
  painter.setPen(QPen(theme_->selection, 1.5));
  painter.drawLine(box.topLeft(), box.bottomLeft());
  painter.drawLine(box.topRight(), box.bottomRight());
  const QString words =
      QString("%1 · %2").arg(time_words(area->last - area->first),
                             percent_words((area->last - area->first) / front_->length()));
  painter.setFont(font_of(small_size, true));
  QRectF label(0, 0, painter.fontMetrics().horizontalAdvance(words) + 12, 18);
  label.moveCenter({std::clamp(box.center().x(), header_width_ + label.width() / 2,
                               viewport()->width() - label.width() / 2),
                    std::max(rows_top + 10.0, box.top() + 10)});
  painter.setPen(Qt::NoPen);
  painter.setBrush(theme_->selection);
  painter.drawRoundedRect(label, 4, 4);
  painter.setPen(QColor("#1f2630"));
  painter.drawText(label, Qt::AlignCenter, words);
}

void TimelineView::paint_picked(QPainter& painter) const {
  painter.setBrush(Qt::NoBrush);
  for (const std::uint64_t event : highlight_) {
    painter.setPen(QPen(theme_->selection, 1.5));
    painter.drawRect(rect_of(event).adjusted(0.5, 0.5, -0.5, -0.5));
  }
  if (const auto* picked = std::get_if<PickedEvent>(&picked_);
      picked != nullptr && !picked->ghost) {
    const QRectF box = rect_of(picked->event);
    painter.setPen(QPen(theme_->plot, 4));
    painter.drawRect(box);
    painter.setPen(QPen(theme_->selection, 2.5));
    painter.drawRect(box);
  } else if (const auto* idle = std::get_if<PickedIdle>(&picked_)) {
    const QRectF row = row_rect(idle->rank);
    const QRectF box(header_width_ + scale_.x(idle->start), row.top() + 1,
                     (idle->end - idle->start) / scale_.per_pixel, row.height() - 2);
    painter.setPen(QPen(theme_->selection, 2, Qt::DashLine));
    painter.drawRect(box.adjusted(1, 1, -1, -1));
  }
}

void TimelineView::paint_hovered(QPainter& painter) const {
  if (hovered_ == picked_)
    return;
  painter.setBrush(Qt::NoBrush);
  QColor colour = theme_->text;
  colour.setAlphaF(0.75F);
  if (const auto* event = std::get_if<PickedEvent>(&hovered_); event != nullptr && !event->ghost) {
    painter.setPen(QPen(colour, 1.5));
    painter.drawRect(rect_of(event->event).adjusted(0.5, 0.5, -0.5, -0.5));
  } else if (const auto* idle = std::get_if<PickedIdle>(&hovered_)) {
    const QRectF row = row_rect(idle->rank);
    colour.setAlphaF(0.4F);
    painter.setPen(QPen(colour, 1, Qt::DashLine));
    painter.drawRect(QRectF(header_width_ + scale_.x(idle->start), row.top() + 2,
                            (idle->end - idle->start) / scale_.per_pixel, row.height() - 4));
  }
}

std::vector<LegendEntry> TimelineView::legend_entries() const {
  std::vector<LegendEntry> entries;
  if (heat_) {
    entries.push_back({"than predicted", {}});
    for (std::size_t c = 0; c < class_count; ++c)
      if (c == 0 || c == class_count / 2 || c + 1 == class_count)
        entries.push_back({c == 0                 ? "much quicker"
                           : c + 1 == class_count ? "much slower"
                                                  : "as predicted",
                           theme_->heat[c], 11});
  } else {
    for (std::size_t c = 0; c < class_count; ++c)
      if (has_kind_[c] != 0)
        entries.push_back({theme_->kinds[c].meaning, theme_->kinds[c].fill, 11});
    if (has_row_[static_cast<std::size_t>(plan::Row::Send)] != 0)
      entries.push_back({"send", theme_->send, 4});
    if (has_row_[static_cast<std::size_t>(plan::Row::Receive)] != 0)
      entries.push_back({"receive", theme_->receive, 4});
    if (has_row_[static_cast<std::size_t>(plan::Row::Reduce)] != 0)
      entries.push_back({"reduce", theme_->reduce, 4});
  }
  if (std::find(has_cause_.begin(), has_cause_.end(), 1) == has_cause_.end())
    return entries;
  entries.push_back({"idle:", {}});
  for (std::size_t cause = 0; cause < plan::idle_cause_count; ++cause)
    if (has_cause_[cause] != 0)
      entries.push_back(
          {QString::fromStdString(plan::idle_causes()[cause]), theme_->causes[cause], 11});
  return entries;
}

void TimelineView::paint_legend(QPainter& painter) const {
  const double top = rows_bottom();
  painter.fillRect(QRectF(0, top, viewport()->width(), viewport()->height() - top), theme_->panel);
  painter.fillRect(QRectF(0, top, viewport()->width(), 1), theme_->line);
  painter.setFont(font_of(small_size));
  const std::vector<LegendEntry> entries = legend_entries();
  for (std::size_t i = 0; i < entries.size() && i < legend_.places.size(); ++i) {
    const LegendEntry& entry = entries[i];
    double x = legend_.places[i].x();
    const double y = top + legend_.places[i].y() * legend_height;
    if (entry.height > 0) {
      painter.fillRect(QRectF(x, y + (legend_height - entry.height) / 2, 11, entry.height),
                       entry.colour);
      x += legend_box;
    }
    painter.setPen(entry.height > 0 ? theme_->soft_text : theme_->text);
    painter.drawText(QRectF(x, y, viewport()->width(), legend_height), Qt::AlignVCenter,
                     entry.words);
  }
}

void TimelineView::paint_arrows(QPainter& painter) const {
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(theme_->selection, 1.6));
  for (std::size_t i = 0; i < std::min(arrows_.size(), most_arrows); ++i) {
    const QRectF from = rect_of(arrows_[i].from), to = rect_of(arrows_[i].to);
    if (from.isNull() || to.isNull())
      continue;
    // What waits may have begun long before, such as a receive: the arrow ends where it goes on.
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
      continue;
    const QPointF along = across > 24 ? QPointF(1, 0) : (end - begin) / length;
    const QPointF beside(-along.y(), along.x());
    painter.setBrush(theme_->selection);
    painter.drawPolygon(
        QPolygonF{end, end - along * 7 + beside * 3.5, end - along * 7 - beside * 3.5});
    painter.setBrush(Qt::NoBrush);
  }
  painter.setRenderHint(QPainter::Antialiasing, false);
}

void TimelineView::paintEvent(QPaintEvent*) {
  QPainter painter(viewport());
  if (!front_ || front_->table().ranks == 0) {
    painter.fillRect(viewport()->rect(), theme_->plot);
    painter.setPen(theme_->soft_text);
    painter.setFont(font_of(heading_size));
    painter.drawText(viewport()->rect(), Qt::AlignCenter, empty_text_);
    return;
  }
  if (dirty_)
    render();
  if (map_dirty_)
    render_map(viewport()->devicePixelRatioF());
  painter.drawImage(QPointF(0, 0), image_);
  painter.setClipRect(QRectF(header_width_, rows_top, plot_width() + gap, viewport()->height()));
  paint_labels(painter);
  paint_critical(painter);
  paint_hovered(painter);
  paint_picked(painter);
  paint_arrows(painter);
  paint_area(painter);
  painter.setClipping(false);
  paint_headers(painter);
  paint_ruler(painter);
  paint_map_frame(painter);
  paint_legend(painter);
  if (drag_ == Drag::Row && moved_) {
    painter.setPen(QPen(theme_->selection, 2));
    painter.drawLine(QPointF(0, mouse_.y()), QPointF(header_width_, mouse_.y()));
  }
}

}  // namespace pipewright::gui
