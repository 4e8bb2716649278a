#include "pipewright/gui/panels/memory_view.hpp"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <QScrollBar>
#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "catalog.hpp"
#include "pipewright/gui/look/words.hpp"

namespace pipewright::gui {
namespace {

constexpr double legend_height = 28;
constexpr double least_memory_row = 44, greatest_memory_row = 150;
constexpr double between_rows = 6;
constexpr std::size_t most_holders = 8;

QString owner_words(sim::Owner owner) { return QString::fromStdString(sim::to_string(owner)); }

/// Returns the last point at or before `time`.
template <class Points>
auto held_at(const Points& points, double time) {
  const auto after = std::upper_bound(points.begin(), points.end(), time,
                                      [](double t, const auto& point) { return t < point.time; });
  return after == points.begin() ? after : std::prev(after);
}

}  // namespace

MemoryView::MemoryView(Workspace& workspace, QWidget* parent)
    : Panel(workspace, {Workspace::Change::Tables}, parent) {
  setFrameShape(QFrame::NoFrame);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setAccessibleName("Memory of each rank over time");
  viewport()->setMouseTracking(true);
}

void MemoryView::set_theme(const Theme& theme) {
  theme_ = &theme;
  dirty_ = true;
  viewport()->update();
}

void MemoryView::follow(const TimeScale& scale, double left, double width) {
  scale_ = scale;
  left_ = left;
  width_ = width;
  dirty_ = true;
  viewport()->update();
}

void MemoryView::rebuild() {
  picture_ = MemoryPicture(workspace_);
  fullest_ = -1;
  for (int rank = 0; rank < picture_.ranks(); ++rank)
    if (fullest_ < 0 || picture_.peak(rank).held > picture_.peak(fullest_).held)
      fullest_ = rank;
  const auto highest = static_cast<double>(picture_.highest());
  const auto cap = static_cast<double>(picture_.cap().value);
  // The picture includes the device's memory unless it is far above all other values.
  top_bytes_ =
      std::max(1.0, 1.12 * (cap > 0 && cap < 3 * highest ? std::max(cap, highest) : highest));
  lay_out();
  viewport()->update();
}

void MemoryView::lay_out() {
  dirty_ = true;
  const double room = viewport()->height() - legend_height;
  row_height_ =
      std::clamp(room / std::max(1, picture_.ranks()), least_memory_row, greatest_memory_row);
  verticalScrollBar()->setPageStep(std::max(1, static_cast<int>(room)));
  verticalScrollBar()->setSingleStep(24);
  verticalScrollBar()->setRange(
      0, std::max(0, static_cast<int>(std::ceil(row_height_ * picture_.ranks() - room))));
}

double MemoryView::row_top(int rank) const {
  return legend_height + rank * row_height_ - verticalScrollBar()->value();
}

int MemoryView::rank_at(double y) const {
  const double at = (y - legend_height + verticalScrollBar()->value()) / row_height_;
  return y >= legend_height && at >= 0 && at < picture_.ranks() ? static_cast<int>(at) : -1;
}

double MemoryView::y_of(int rank, double bytes) const {
  return row_top(rank) + row_height_ - (row_height_ - between_rows) * bytes / top_bytes_;
}

void MemoryView::render_rank(int rank, double ratio) {
  const auto& points = picture_.owners()[static_cast<std::size_t>(rank)];
  const int left = static_cast<int>(left_ * ratio);
  const int columns = std::min(static_cast<int>(width_ * ratio), image_.width() - left);
  const double bottom = (row_top(rank) + row_height_) * ratio;
  const double per_byte = (row_height_ - between_rows) * ratio / top_bytes_;
  const double per_pixel = scale_.per_pixel / ratio;
  std::array<QRgb, sim::owner_count> colors{};
  for (std::size_t owner = 0; owner < sim::owner_count; ++owner)
    colors[owner] = theme_->owners[owner].rgb();
  const int lowest = std::min(image_.height(), static_cast<int>(std::lround(bottom)));
  const int highest = static_cast<int>(legend_height * ratio);
  auto point = held_at(points, scale_.first);
  for (int column = 0; column < columns; ++column) {
    const double from = scale_.first + column * per_pixel, to = from + per_pixel;
    if (to < 0 || from >= picture_.length())
      continue;
    // A pixel shows the maximum within it, so that no peak is lost.
    while (std::next(point) != points.end() && std::next(point)->time <= from)
      ++point;
    auto most = point;
    for (auto next = std::next(point); next != points.end() && next->time < to; ++next)
      if (next->sum() > most->sum())
        most = next;
    double sum = 0;
    int y = lowest;
    for (std::size_t owner = 0; owner < sim::owner_count; ++owner) {
      sum += static_cast<double>(most->held[owner]);
      const int top = std::max(highest, static_cast<int>(std::lround(bottom - sum * per_byte)));
      for (; y > top; --y)
        reinterpret_cast<QRgb*>(image_.scanLine(y - 1))[left + column] = colors[owner];
    }
  }
}

void MemoryView::render() {
  const double ratio = viewport()->devicePixelRatioF();
  const QSize size = (QSizeF(viewport()->size()) * ratio).toSize();
  if (image_.size() != size)
    image_ = QImage(size, QImage::Format_RGB32);
  image_.setDevicePixelRatio(1);
  image_.fill(theme_->panel);
  for (int rank = 0; rank < static_cast<int>(picture_.owners().size()); ++rank)
    if (row_top(rank) < viewport()->height() && row_top(rank) + row_height_ > legend_height)
      render_rank(rank, ratio);
  image_.setDevicePixelRatio(ratio);
  dirty_ = false;
}

void MemoryView::paint_legend(QPainter& painter) const {
  painter.fillRect(QRectF(0, 0, viewport()->width(), legend_height), theme_->panel);
  painter.setFont(font_of(small_size));
  double x = left_;
  const auto entry = [&](const QString& words, const QColor& color, bool is_line) {
    if (is_line)
      painter.fillRect(QRectF(x, legend_height / 2 - 1, 14, 2), color);
    else
      painter.fillRect(QRectF(x, legend_height / 2 - 5, 10, 10), color);
    x += is_line ? 20 : 16;
    painter.setPen(theme_->soft_text);
    const double width = painter.fontMetrics().horizontalAdvance(words);
    painter.drawText(QRectF(x, 0, width + 2, legend_height), Qt::AlignVCenter, words);
    x += width + 2 * gap;
  };
  for (std::size_t owner = 0; owner < sim::owner_count; ++owner) {
    const bool any =
        std::any_of(picture_.owners().begin(), picture_.owners().end(), [&](const auto& points) {
          return std::any_of(points.begin(), points.end(),
                             [&](const sim::OwnersPoint& point) { return point.held[owner] > 0; });
        });
    if (any)
      entry(owner_words(static_cast<sim::Owner>(owner)), theme_->owners[owner], false);
  }
  if (!picture_.samples(0).empty())
    entry(picture_.is_measured() ? "measured" : "sampled", theme_->text, true);
  if (picture_.cap().value > 0)
    entry("device: " + byte_words(static_cast<double>(picture_.cap().value)), theme_->warning,
          true);
}

void MemoryView::paint_measured(QPainter& painter, int rank) const {
  const auto samples = picture_.samples(rank);
  if (samples.empty())
    return;
  // At most one point per pixel: the maximum within it.
  QPainterPath path;
  const double last = std::min(width_, scale_.x(workspace_.front()->length()));
  auto sample = samples.begin();
  std::int64_t held = 0;
  bool begun = false;
  for (double x = std::max(0.0, std::floor(scale_.x(0))); x < last; ++x) {
    const double to = scale_.time(x + 1);
    std::int64_t most = 0;
    bool any = false;
    while (sample != samples.end() && sample->time < to) {
      held = sample->bytes;
      most = any ? std::max(most, held) : held;
      any = true;
      ++sample;
    }
    const double y = y_of(rank, static_cast<double>(any ? most : held));
    const QPointF at(left_ + x, y);
    if (!begun)
      path.moveTo(at);
    else
      path.lineTo(at.x(), path.currentPosition().y()), path.lineTo(at);
    begun = true;
  }
  if (begun)
    path.lineTo(left_ + last, path.currentPosition().y());
  painter.setBrush(Qt::NoBrush);
  QColor halo = theme_->panel;
  halo.setAlphaF(0.6F);
  painter.setPen(QPen(halo, 3));
  painter.drawPath(path);
  painter.setPen(QPen(theme_->text, 1.5));
  painter.drawPath(path);
}

void MemoryView::paint_marks(QPainter& painter, int rank) const {
  const double bottom = row_top(rank) + row_height_;
  painter.fillRect(QRectF(0, bottom - 0.5, viewport()->width(), 1), theme_->line);
  const auto cap = static_cast<double>(picture_.cap().value);
  if (cap > 0 && cap <= top_bytes_) {
    painter.setPen(QPen(theme_->warning, 1.2, Qt::DashLine));
    painter.drawLine(QPointF(left_, y_of(rank, cap)), QPointF(left_ + width_, y_of(rank, cap)));
  }
  paint_measured(painter, rank);
  paint_peak(painter, rank);
  paint_name(painter, rank);
}

/// Returns "peak 1.200 GB"; for the fullest rank followed by its three largest owners.
QString MemoryView::peak_words(int rank) const {
  const sim::MemoryPeak peak = picture_.peak(rank);
  QString words = "peak " + byte_words(static_cast<double>(peak.held.value));
  if (rank != fullest_ || picture_.owners().empty())
    return words;
  const auto point = held_at(picture_.owners()[static_cast<std::size_t>(rank)], peak.time);
  std::vector<std::size_t> owners(sim::owner_count);
  std::iota(owners.begin(), owners.end(), std::size_t{0});
  std::sort(owners.begin(), owners.end(),
            [&](std::size_t a, std::size_t b) { return point->held[a] > point->held[b]; });
  for (std::size_t i = 0; i < 3 && point->held[owners[i]] > 0; ++i)
    words += QString(i == 0 ? ": %1 %2" : ", %1 %2")
                 .arg(owner_words(static_cast<sim::Owner>(owners[i])),
                      byte_words(static_cast<double>(point->held[owners[i]])));
  return words;
}

void MemoryView::paint_peak(QPainter& painter, int rank) const {
  const sim::MemoryPeak peak = picture_.peak(rank);
  const auto bytes = static_cast<double>(peak.held.value);
  const double x = left_ + scale_.x(peak.time), y = y_of(rank, bytes);
  if (x < left_ || x > left_ + width_ || bytes <= 0)
    return;
  painter.setFont(font_of(small_size, rank == fullest_));
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(theme_->panel, 1.5));
  painter.setBrush(rank == fullest_ ? theme_->warning : theme_->text);
  painter.drawPolygon(QPolygonF{QPointF(x, y - 1), QPointF(x - 5, y - 9), QPointF(x + 5, y - 9)});
  painter.setRenderHint(QPainter::Antialiasing, false);
  const QString words = peak_words(rank);
  QRectF box(0, 0, painter.fontMetrics().horizontalAdvance(words) + 10, 16);
  const bool left_of = x + 8 + box.width() > left_ + width_;
  box.moveTopLeft({left_of ? x - 8 - box.width() : x + 8, std::max(row_top(rank) + 1, y - 16)});
  QColor wash = theme_->panel;
  wash.setAlphaF(0.86F);
  painter.setPen(Qt::NoPen);
  painter.setBrush(wash);
  painter.drawRoundedRect(box, 3, 3);
  painter.setPen(rank == fullest_ ? theme_->warning : theme_->text);
  painter.drawText(box, Qt::AlignCenter, words);
}

/// Paints the rank's name next to its row, with its predicted peak and the measured one below it.
void MemoryView::paint_name(QPainter& painter, int rank) const {
  painter.setFont(font_of(text_size));
  painter.setPen(theme_->text);
  const QRectF header(10, row_top(rank) + between_rows, left_ - 20, row_height_ - between_rows);
  painter.drawText(header, Qt::AlignTop | Qt::AlignLeft,
                   QString::fromStdString(plan::rank_name(workspace_.front()->table(), rank)));
  painter.setFont(font_of(small_size));
  painter.setPen(theme_->soft_text);
  painter.drawText(header.adjusted(0, 17, 0, 0), Qt::AlignTop | Qt::AlignLeft,
                   byte_words(static_cast<double>(picture_.peak(rank).held.value)));
  const auto measured = static_cast<double>(picture_.measured_peak(rank).held.value);
  if (measured <= 0 || picture_.owners().empty())
    return;
  // Preceded by a sample of its line.
  painter.fillRect(QRectF(header.left(), header.top() + 39, 10, 2), theme_->text);
  painter.drawText(header.adjusted(15, 33, 0, 0), Qt::AlignTop | Qt::AlignLeft,
                   byte_words(measured));
}

void MemoryView::paint_hover(QPainter& painter) const {
  if (mouse_.x() < left_ || rank_at(mouse_.y()) < 0)
    return;
  painter.fillRect(QRectF(mouse_.x(), legend_height, 1, viewport()->height()), theme_->soft_text);
}

void MemoryView::paintEvent(QPaintEvent*) {
  QPainter painter(viewport());
  painter.fillRect(viewport()->rect(), theme_->panel);
  const bool any = picture_.ranks() > 0 && picture_.highest() > 0;
  if (!any) {
    painter.setPen(theme_->soft_text);
    painter.setFont(font_of(text_size));
    painter.drawText(viewport()->rect(), Qt::AlignCenter,
                     picture_.ranks() == 0
                         ? "Open a scenario or a run to see each rank's memory over time."
                         : "This timeline has no samples of memory.");
    return;
  }
  if (dirty_)
    render();
  painter.drawImage(QPointF(0, 0), image_);
  painter.setClipRect(QRectF(0, legend_height, viewport()->width(), viewport()->height()));
  for (int rank = 0; rank < picture_.ranks(); ++rank)
    if (row_top(rank) < viewport()->height() && row_top(rank) + row_height_ > legend_height)
      paint_marks(painter, rank);
  paint_hover(painter);
  painter.setClipping(false);
  painter.fillRect(QRectF(left_ - 1, 0, 1, viewport()->height()), theme_->line);
  paint_legend(painter);
}

QString MemoryView::holders_words(int rank, double time) const {
  if (rank < 0 || rank >= picture_.ranks() || time < 0 || time > picture_.length())
    return {};
  QString words =
      QString("%1 at %2")
          .arg(QString::fromStdString(plan::rank_name(workspace_.front()->table(), rank)),
               time_words(time));
  const auto add = [&](const QString& name, double bytes) {
    words += QString("\n%1  %2").arg(byte_words(bytes), name);
  };
  if (!picture_.owners().empty()) {
    const auto holders = picture_.holders(rank, time);
    double all = 0;
    for (const sim::Holder& holder : holders)
      all += static_cast<double>(holder.bytes.value);
    add("predicted total", all);
    for (std::size_t i = 0; i < std::min(most_holders, holders.size()); ++i)
      add(QString::fromStdString(holders[i].name), static_cast<double>(holders[i].bytes.value));
    if (holders.size() > most_holders)
      words += QString("\nand %1 more").arg(holders.size() - most_holders);
  }
  if (const auto samples = picture_.samples(rank); !samples.empty())
    add(picture_.is_measured() ? "measured total" : "total",
        static_cast<double>(held_at(samples, time)->bytes));
  return words;
}

void MemoryView::resizeEvent(QResizeEvent*) { lay_out(); }

void MemoryView::mouseMoveEvent(QMouseEvent* event) {
  mouse_ = event->position();
  viewport()->update();
}

void MemoryView::leaveEvent(QEvent*) {
  mouse_ = {-1, -1};
  viewport()->update();
}

void MemoryView::scrollContentsBy(int, int) {
  dirty_ = true;
  viewport()->update();
}

bool MemoryView::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const QString words =
        help->pos().x() < left_
            ? QString()
            : holders_words(rank_at(help->pos().y()), scale_.time(help->pos().x() - left_));
    if (words.isEmpty())
      QToolTip::hideText();
    else
      QToolTip::showText(help->globalPos(), words, viewport());
    return true;
  }
  return QAbstractScrollArea::viewportEvent(event);
}

PanelDescriptor panel::memory() {
  return {.name = "memory",
          .title = "Memory",
          .help = "Each rank's memory over time, and its owners at the peak.",
          .shortcut = "Alt+3",
          .dock = PanelDock::Details,
          .make = [](PanelHost& host) -> MadePanel {
            auto* memory = new MemoryView(host.workspace);
            host.observe_section([memory](const TimeScale& scale, double left, double width) {
              memory->follow(scale, left, width);
            });
            return memory;
          }};
}

}  // namespace pipewright::gui
