#include "pipewright/gui/timeline/rows_image.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>

#include "pipewright/gui/timeline/row_raster.hpp"
#include "pipewright/plan/program/instruction.hpp"

namespace pipewright::gui {
namespace {

constexpr double narrowest_label = 14;
constexpr std::size_t most_labels = 600;
constexpr std::size_t worth_a_thread = 8;  // rows

bool is_light(QRgb color) {
  return 0.299 * qRed(color) + 0.587 * qGreen(color) + 0.114 * qBlue(color) > 150;
}

/// Returns the whole name if there is room, otherwise the number of the microbatch or step.
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

/// Returns the colors of a row of events; those of the ghost are paler.
ClassColors colors_for(const TimelineModel& model, plan::Row row, bool ghost) {
  ClassColors colors;
  if (model.heat && !ghost)
    return colors_of(model.theme->heat);
  switch (row) {
    case plan::Row::Compute:
      colors = colors_of(model.theme->kinds);
      break;
    case plan::Row::Send:
      colors = colors_of(model.theme->send);
      break;
    case plan::Row::Receive:
      colors = colors_of(model.theme->receive);
      break;
    case plan::Row::Reduce:
      colors = colors_of(model.theme->reduce);
      break;
  }
  if (ghost)
    for (QRgb& fill : colors.fill)
      fill = mixed(fill, model.theme->plot.rgb(), 0.45);
  return colors;
}

/// Renders the visible rows into an image, and finds the events that are wide enough for a label.
struct RowsRenderer {
  const TimelineModel& model;
  double scale;
  QImage& image;
  std::vector<RowLabel>& labels;
  const TimelineLayout& at = model.layout;
  std::mutex labels_mutex{};

  int pixel(double of_viewport) const { return static_cast<int>(std::lround(of_viewport * scale)); }

  void render_table(const PlacedRow& row, double top, double height, bool ghost) {
    const PaintedTable& table = *(ghost ? model.tables.ghost : model.tables.front);
    if (row.rank >= table.table().ranks || height < 1)
      return;
    const Theme& theme = *model.theme;
    const TimeScale pixels{at.scale.first, at.scale.per_pixel / scale};
    const auto bands = bands_of(table, row.rank, 0, height);
    const ClassColors causes = colors_of(theme.causes);
    for (const TrackBand& drawn : bands) {
      const plan::EventTrack& track = table.table().tracks[drawn.track];
      const bool compute = track.row == plan::Row::Compute;
      const int band_top = pixel(top + drawn.top);
      const Band band{static_cast<int>(at.plot_left * scale),
                      static_cast<int>(at.plot_width() * scale), band_top,
                      std::max(1, pixel(top + drawn.top + drawn.height) - band_top)};
      const QRgb blank = compute ? theme.idle.rgb() : theme.plot.rgb();
      const ClassColors colors = colors_for(model, track.row, ghost);
      // Causes belong to a rank, so only its first track shows them.
      const bool with_causes = compute && bands.front().track == drawn.track && !ghost;
      thread_local RowRaster raster;  // rows are painted by several threads
      const auto& wide = raster.paint(
          image, band, pixels,
          {table.sums(drawn.track), colors, with_causes ? &table.idle(row.rank) : nullptr, causes,
           blank, theme.plot.rgb(), table.length(), narrowest_label * scale});
      if (drawn.height < 11 || (ghost && model.overlaid))
        continue;
      const std::lock_guard lock(labels_mutex);
      for (const WideEvent& event : wide)
        labels.push_back(
            {{at.plot_left + event.x / scale, top + drawn.top, event.width / scale, drawn.height},
             track.begin + event.event,
             ghost,
             colors.fill[table.sums(drawn.track).class_of(event.event)]});
    }
  }

  void render_overlaid(const PlacedRow& row) {
    const RowParts parts = at.parts_of(row);
    const double top = at.row_y(row) + parts.front_top;
    const int first = std::max(0, pixel(top));
    const int last = std::min(image.height(), pixel(top + parts.front_height));
    render_table(row, top, parts.front_height, true);
    std::vector<QRgb> behind;
    for (int line = first; line < last; ++line) {
      const auto* pixels = reinterpret_cast<const QRgb*>(image.constScanLine(line));
      behind.insert(behind.end(), pixels, pixels + image.width());
    }
    render_table(row, top, parts.front_height, false);
    const QRgb* other = behind.data();
    for (int line = first; line < last; ++line) {
      auto* pixels = reinterpret_cast<QRgb*>(image.scanLine(line));
      for (int x = 0; x < image.width(); ++x, ++other)  // the mean of each color
        pixels[x] = (((pixels[x] ^ *other) & 0xfefefefeU) >> 1) + (pixels[x] & *other);
    }
  }

  void render_row(const PlacedRow& row) {
    if (model.tables.ghost && model.overlaid && !row.collapsed)
      return render_overlaid(row);
    const double y = at.row_y(row);
    const RowParts parts = at.parts_of(row);
    if (parts.ghost_height > 0)
      render_table(row, y + parts.ghost_top, parts.ghost_height, true);
    render_table(row, y + parts.front_top, parts.front_height, false);
  }

  void render() {
    const auto others = at.scrolled_rows();
    std::atomic<std::size_t> next = 0;
    const auto render_others = [&] {
      for (std::size_t row = next++; row < others.size(); row = next++)
        render_row(others[row]);
    };
    image.detach();
    {
      std::vector<std::jthread> helpers;
      if (others.size() >= worth_a_thread)
        for (unsigned core = 1; core < std::min(4U, std::thread::hardware_concurrency()); ++core)
          helpers.emplace_back(render_others);
      render_others();
    }
    // Pinned rows come last and cover rows that scroll beneath them.
    for (const PlacedRow& row : at.pinned_rows())
      if (at.row_y(row) <= at.viewport.height())
        render_row(row);
    // The order must not depend on the threads' timing.
    std::sort(labels.begin(), labels.end(), [](const RowLabel& a, const RowLabel& b) {
      return std::tuple(a.box.top(), a.box.left()) < std::tuple(b.box.top(), b.box.left());
    });
    if (labels.size() > most_labels)
      labels.resize(most_labels);
  }
};

QImage rendered_map(const TimelineModel& model, double scale) {
  const int width = static_cast<int>(model.layout.plot_width() * scale);
  const int height = static_cast<int>((TimelineLayout::minimap_height - gap) * scale);
  QImage map(width, height, QImage::Format_RGB32);
  map.fill(model.theme->plot);
  const PaintedTable& table = *model.tables.front;
  ClassColors colors = colors_for(model, plan::Row::Compute, false);
  colors.hatch.fill(Hatch::None);
  RowRaster raster;
  const auto& rows = model.layout.rows.rows;
  // The map has the order of the rows. If there are more rows than lines, it shows a selection.
  const int shown = std::min(static_cast<int>(rows.size()), height);
  for (int i = 0; i < shown; ++i) {
    const int rank =
        rows[static_cast<std::size_t>(i) * rows.size() / static_cast<std::size_t>(shown)].rank;
    const int top = i * height / shown, bottom = (i + 1) * height / shown;
    auto [track, end] = table.tracks_of(rank);
    while (track < end && table.table().tracks[track].row != plan::Row::Compute)
      ++track;
    if (track < end)
      raster.paint(map, {0, width, top, std::max(1, bottom - top - (bottom - top > 3 ? 1 : 0))},
                   fitted(0, table.length(), width),
                   {table.sums(track),
                    colors,
                    nullptr,
                    {},
                    model.theme->idle.rgb(),
                    model.theme->plot.rgb(),
                    table.length()});
  }
  map.setDevicePixelRatio(scale);
  return map;
}

}  // namespace

void RowsImage::update(const TimelineModel& model, double scale) {
  if (std::exchange(map_dirty_, false))
    map_ = rendered_map(model, scale);
  if (!std::exchange(rows_dirty_, false))
    return;
  const TimelineLayout& at = model.layout;
  if (const QSize size = (at.viewport * scale).toSize(); rows_.size() != size)
    rows_ = QImage(size, QImage::Format_RGB32);
  rows_.setDevicePixelRatio(1);
  rows_.fill(model.theme->plot);
  labels_.clear();
  RowsRenderer{model, scale, rows_, labels_}.render();
  rows_.setDevicePixelRatio(scale);
  counts_ = {.rows = at.pinned_rows().size() + at.scrolled_rows().size(),
             .headings = at.headings_in_sight().size(),
             .labels = labels_.size()};
}

void RowsImage::paint_labels(QPainter& painter, const TimelineModel& model) const {
  const QFont large = font_of(small_size), small = font_of(small_size - 2);
  const QFontMetricsF large_metrics(large), small_metrics(small);
  for (const RowLabel& label : labels_) {
    const bool low = label.box.height() < 15;
    const PaintedTable& table = *(label.ghost ? model.tables.ghost : model.tables.front);
    const QString text = label_of(table.table().name_at(label.event), label.box.width(),
                                  low ? small_metrics : large_metrics);
    if (text.isEmpty())
      continue;
    painter.setFont(low ? small : large);
    painter.setPen(is_light(label.fill) ? QColor("#1f2630") : QColor("#ffffff"));
    painter.drawText(label.box, Qt::AlignCenter, text);
  }
}

}  // namespace pipewright::gui
