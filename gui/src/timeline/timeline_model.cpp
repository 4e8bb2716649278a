#include "pipewright/gui/timeline/timeline_model.hpp"

#include <QFontMetricsF>
#include <algorithm>
#include <cmath>

namespace pipewright::gui {
namespace {

constexpr double most_header = 380;
constexpr double snap_within = 6;          // pixels
constexpr double narrowest_revealed = 24;  // pixels

/// Returns the width of the widest text, measuring only the longest ones, because measuring is
/// slow.
double widest_of(const std::vector<std::string>& texts, const QFontMetricsF& metrics) {
  constexpr std::size_t most_measured = 64;
  std::vector<const std::string*> longest;
  for (const std::string& text : texts)
    longest.push_back(&text);
  const auto last =
      longest.begin() + static_cast<std::ptrdiff_t>(std::min(most_measured, longest.size()));
  std::partial_sort(longest.begin(), last, longest.end(),
                    [](const auto* a, const auto* b) { return a->size() > b->size(); });
  double widest = 0;
  for (auto text = longest.begin(); text != last; ++text)
    widest = std::max(widest, metrics.horizontalAdvance(QString::fromStdString(**text)));
  return widest;
}

}  // namespace

void TimelineModel::show(TimelineTables shown) {
  tables = std::move(shown);
  marks = {};
  legend = tables.front ? LegendContents(*tables.front) : LegendContents();
  fit_headers();
}

/// Ranks have short names, but names of a trace's threads can be long.
void TimelineModel::fit_headers() {
  layout.note_width = std::ceil(widest_of(notes.of, QFontMetricsF(font_of(small_size))));
  layout.note_width += layout.note_width > 0 ? gap : 0;
  double width = TimelineLayout::least_header;
  if (tables.front && !tables.front->table().rank_names.empty())
    width = std::max(
        width, widest_of(tables.front->table().rank_names, QFontMetricsF(font_of(text_size))) +
                   TimelineLayout::beside_name);
  layout.plot_left = std::ceil(std::min(width + layout.note_width, most_header));
}

void TimelineModel::lay_out(QSizeF viewport) {
  layout.viewport = viewport;
  layout.ghost_above = tables.ghost && !overlaid;
  layout.legend = placed(legend_entries(), QFontMetricsF(font_of(small_size)), layout.plot_left,
                         viewport.width() - gap);
  const double room = std::max(0.0, layout.rows_bottom() - TimelineLayout::rows_top);
  layout.rows = tables.front
                    ? lay_out_rows(tables.front->table(), rows, room, tables.ghost != nullptr)
                    : RowLayout();
}

bool TimelineModel::shows_whole() const {
  return !tables.front || layout.scale == fitted(0, tables.front->length(), layout.plot_width());
}

std::pair<double, double> TimelineModel::seen() const {
  return {std::max(0.0, layout.scale.first),
          std::min(tables.front->length(), layout.scale.time(layout.plot_width()))};
}

QRectF TimelineModel::event_rect(std::uint64_t event) const {
  const PaintedTable& table = *tables.front;
  const std::size_t track = table.track_of(event);
  const PlacedRow* const row = layout.rows.row_of(table.table().tracks[track].rank);
  if (row == nullptr)
    return {};
  const RowParts parts = layout.parts_of(*row);
  for (const TrackBand& band : bands_of(table, row->rank, parts.front_top, parts.front_height))
    if (band.track == track) {
      const double x = layout.scale.x(table.table().start[event]);
      return {layout.plot_left + x, layout.row_y(*row) + band.top,
              layout.scale.x(table.table().end[event]) - x, band.height};
    }
  return {};
}

QRectF TimelineModel::rect_of(const Picked& picked) const {
  if (const auto* event = std::get_if<PickedEvent>(&picked))
    return event->ghost ? QRectF() : event_rect(event->event);
  QRectF box;
  if (const auto* idle = std::get_if<PickedIdle>(&picked))
    box = layout.row_rect(idle->rank);
  else if (const auto* area = std::get_if<PickedArea>(&picked))
    for (const int rank : area->ranks)
      box = box.united(layout.row_rect(rank));
  if (!box.isNull()) {
    const PickedSpan span = *tables.span_of(picked);
    box.setLeft(layout.x(span.first));
    box.setRight(layout.x(span.last));
  }
  return box;
}

std::optional<PickedEvent> TimelineModel::event_under(const PlacedRow& row, QPointF at) const {
  const RowParts parts = layout.parts_of(row);
  const double y = at.y() - layout.row_y(row);
  const bool ghost = parts.ghost_height > 0 && y < parts.front_top;
  const PaintedTable& table = ghost ? *tables.ghost : *tables.front;
  const double top = ghost ? parts.ghost_top : parts.front_top;
  const double height = ghost ? parts.ghost_height : parts.front_height;
  if (row.rank >= table.table().ranks)
    return {};
  const double time = layout.time(at.x());
  for (const TrackBand& band : bands_of(table, row.rank, top, height))
    if (y >= band.top && y < band.top + band.height + 1)
      if (const auto event = table.event_at(band.track, time))
        return PickedEvent{ghost, *event};
  return {};
}

Picked TimelineModel::pick_at(QPointF at) const {
  const PlacedRow* row = layout.row_at(at.y());
  if (!tables.front || row == nullptr || at.x() < layout.plot_left)
    return {};
  if (const auto event = event_under(*row, at))
    return *event;
  return picked_at(*tables.front, row->rank, layout.time(at.x()));
}

double TimelineModel::snapped(QPointF at) const {
  const double time = layout.time(at.x());
  const PlacedRow* row = layout.row_at(at.y());
  if (!tables.front || row == nullptr)
    return time;
  double best = time, distance = snap_within * layout.scale.per_pixel;
  const auto tracks = tables.front->tracks_of(row->rank);
  const auto offer = [&](double edge) {
    if (std::abs(edge - time) < distance) {
      distance = std::abs(edge - time);
      best = edge;
    }
  };
  for (std::size_t track = tracks.begin; track < tracks.end; ++track) {
    const BusySums& sums = tables.front->sums(track);
    const std::uint64_t begun = sums.begun_before(time);
    if (begun > 0) {
      offer(sums.start(begun - 1));
      offer(sums.end(begun - 1));
    }
    if (begun < sums.size())
      offer(sums.start(begun));
  }
  return best;
}

std::optional<PickedEvent> TimelineModel::step(int by) const {
  if (!tables.front || tables.front->table().size() == 0)
    return {};
  if (const auto* now = std::get_if<PickedEvent>(&marks.picked))
    return tables.after(*now, by);
  PickedEvent first;
  const plan::EventTable& table = tables.front->table();
  if (!layout.rows.rows.empty())
    if (const auto tracks = tables.front->tracks_of(layout.rows.rows.front().rank);
        tracks.begin < table.tracks.size())
      first.event = table.tracks[tracks.begin].begin;
  return first;
}

TimeScale TimelineModel::revealing(const PickedSpan& span) const {
  TimeScale scale = layout.scale;
  scale.per_pixel =
      std::min(scale.per_pixel, std::max(span.last - span.first, 1e-12) / narrowest_revealed);
  if (scale == layout.scale && scale.x(span.last) <= layout.plot_width() &&
      scale.x(span.first) >= 0)
    return scale;
  return centered(scale, (span.first + span.last) / 2, layout.plot_width());
}

}  // namespace pipewright::gui
