#include "pipewright/gui/timeline/timeline_view.hpp"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QScrollBar>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "pipewright/gui/look/words.hpp"
#include "pipewright/gui/timeline/timeline_access.hpp"
#include "pipewright/plan/program/instruction.hpp"

namespace pipewright::gui {
namespace {

constexpr double snap_within = 6;  // pixels
constexpr double key_zoom = 1.25;
constexpr double ghost_part = 0.3;         // of a row
constexpr double key_pan = 90;             // pixels
constexpr double narrowest_revealed = 24;  // pixels

}  // namespace

TimelineView::TimelineView(QWidget* parent) : QAbstractScrollArea(parent), theme_(&light_theme()) {
  install_timeline_access();
  setObjectName("timeline");
  setAccessibleName("Timeline");
  setFocusPolicy(Qt::StrongFocus);
  setFrameShape(QFrame::NoFrame);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  viewport()->setMouseTracking(true);
  viewport()->setAttribute(Qt::WA_OpaquePaintEvent);
}

void TimelineView::show_tables(std::shared_ptr<PaintedTable> front,
                               std::shared_ptr<PaintedTable> ghost) {
  const bool keeps = front_ && front && front_->length() > 0 &&
                     front->length() / front_->length() < 2 &&
                     front_->length() / front->length() < 2;
  const bool saw_all = !front_ || scale_ == fitted(0, front_->length(), plot_width());
  front_ = std::move(front);
  ghost_ = std::move(ghost);
  hovered_ = {};
  find_legend();
  picked_ = {};
  marked_ = -1;
  arrows_.clear();
  highlight_.clear();
  fit_header();
  lay_out();
  if (!keeps || saw_all)
    fit_all();
  changed();
}

void TimelineView::set_theme(const Theme& theme) {
  theme_ = &theme;
  changed();
}

void TimelineView::set_overlaid(bool overlaid) {
  overlaid_ = overlaid;
  changed();
}

void TimelineView::set_heat(bool heat) {
  heat_ = heat;
  lay_out();
  changed();
}

void TimelineView::set_empty_text(const QString& text) {
  empty_text_ = text;
  viewport()->update();
}

double TimelineView::plot_width() const {
  return std::max(1.0, viewport()->width() - header_width_ - gap);
}

void TimelineView::set_scale(TimeScale scale) {
  if (scale == scale_)
    return;
  scale_ = scale;
  dirty_ = true;
  viewport()->update();
  if (on_scale)
    on_scale();
}

void TimelineView::fit_all() {
  if (front_)
    set_scale(fitted(0, std::max(front_->length(), ghost_ ? ghost_->length() : 0), plot_width()));
}

void TimelineView::show_time(double first, double last) {
  const double margin = (last - first) * 0.05;
  set_scale(fitted(first - margin, last + margin, plot_width()));
}

void TimelineView::fit() {
  if (!front_)
    return;
  const TimeScale before = scale_;
  if (const auto* area = std::get_if<PickedArea>(&picked_))
    show_time(area->first, area->last);
  else if (const auto* idle = std::get_if<PickedIdle>(&picked_))
    show_time(idle->start, idle->end);
  else if (const auto* event = std::get_if<PickedEvent>(&picked_)) {
    const plan::EventTable& table = (event->ghost ? ghost_ : front_)->table();
    show_time(table.start[event->event], table.end[event->event]);
  }
  if (scale_ == before)
    fit_all();
}

void TimelineView::set_rows(RowState state) {
  state_ = std::move(state);
  lay_out();
  changed();
}

void TimelineView::set_notes(RowNotes notes) {
  const bool saw_all = front_ && scale_ == fitted(0, front_->length(), plot_width());
  notes_ = std::move(notes);
  fit_header();
  lay_out();
  if (saw_all)
    fit_all();
  changed();
}

void TimelineView::pick(Picked picked) {
  if (picked == picked_)
    return;
  picked_ = std::move(picked);
  marked_ = -1;
  arrows_.clear();
  highlight_.clear();
  viewport()->update();
  if (on_picked)
    on_picked(picked_);
  announce_pick(*this);
}

void TimelineView::walk(int by) {
  const auto* now = std::get_if<PickedEvent>(&picked_);
  if (!front_ || front_->table().size() == 0)
    return;
  PickedEvent next{now != nullptr && now->ghost, 0};
  const PaintedTable& table = next.ghost ? *ghost_ : *front_;
  if (now != nullptr) {
    const plan::EventTrack& track = table.table().tracks[table.track_of(now->event)];
    const auto at = static_cast<std::int64_t>(now->event) + by;
    next.event = static_cast<std::uint64_t>(std::clamp(at, static_cast<std::int64_t>(track.begin),
                                                       static_cast<std::int64_t>(track.end) - 1));
  } else if (!layout_.rows.empty()) {
    const auto tracks = table.tracks_of(layout_.rows.front().rank);
    next.event =
        tracks.begin < table.table().tracks.size() ? table.table().tracks[tracks.begin].begin : 0;
  }
  pick(next);
  // What was walked to is kept in sight.
  const double start = table.table().start[next.event], end = table.table().end[next.event];
  if (scale_.x(end) > plot_width() || scale_.x(start) < 0)
    set_scale(centred(scale_, (start + end) / 2, plot_width()));
}

void TimelineView::show_row(int rank) {
  const PlacedRow* const row = layout_.row_of(rank);
  if (row == nullptr)
    return;
  marked_ = rank;
  QScrollBar* const bar = verticalScrollBar();
  if (!row->pinned &&
      (row->top < bar->value() || row->top + row->height > bar->value() + bar->pageStep()))
    bar->setValue(static_cast<int>(row->top + row->height / 2) - bar->pageStep() / 2);
  viewport()->update();
}

void TimelineView::reveal(const Picked& picked) {
  double first = 0, last = 0;
  int rank = -1;
  if (const auto* event = std::get_if<PickedEvent>(&picked)) {
    const PaintedTable& table = event->ghost ? *ghost_ : *front_;
    first = table.table().start[event->event];
    last = table.table().end[event->event];
    rank = table.table().tracks[table.track_of(event->event)].rank;
  } else if (const auto* idle = std::get_if<PickedIdle>(&picked)) {
    first = idle->start;
    last = idle->end;
    rank = idle->rank;
  } else {
    return;
  }
  if (const QRectF row = row_rect(rank); row.top() < rows_top)
    verticalScrollBar()->setValue(verticalScrollBar()->value() +
                                  static_cast<int>(row.top() - rows_top));
  else if (row.bottom() > viewport()->height())
    verticalScrollBar()->setValue(verticalScrollBar()->value() +
                                  static_cast<int>(row.bottom() - viewport()->height()));
  TimeScale moved = scale_;
  moved.per_pixel = std::min(moved.per_pixel, std::max(last - first, 1e-12) / narrowest_revealed);
  if (moved == scale_ && scale_.x(last) <= plot_width() && scale_.x(first) >= 0)
    return;
  set_scale(centred(moved, (first + last) / 2, plot_width()));
}

void TimelineView::set_arrows(std::vector<Arrow> arrows) {
  arrows_ = std::move(arrows);
  viewport()->update();
}

void TimelineView::set_highlight(std::vector<std::uint64_t> events) {
  highlight_ = std::move(events);
  viewport()->update();
}

void TimelineView::set_show_critical(bool show) {
  show_critical_ = show;
  viewport()->update();
}

double TimelineView::rows_bottom() const {
  return viewport()->height() - legend_.rows * legend_height;
}

TimelineView::RowParts TimelineView::parts_of(const PlacedRow& row) const {
  const double pad = row.height >= 40 ? 4 : 1;
  const double room = row.height - 2 * pad;
  RowParts parts{pad, 0, pad, room};
  if (ghost_ && !overlaid_ && !row.collapsed) {
    parts.ghost_height = std::floor(room * ghost_part) - 1;
    parts.front_top += parts.ghost_height + 1;
    parts.front_height -= parts.ghost_height + 1;
  }
  return parts;
}

void TimelineView::find_legend() {
  has_kind_.fill(0);
  has_cause_.fill(0);
  has_row_.fill(0);
  if (!front_)
    return;
  for (std::size_t kind = 0; kind < class_count; ++kind)
    has_kind_[kind] = front_->has_kind(kind) ? 1 : 0;
  for (const plan::EventTrack& track : front_->table().tracks)
    has_row_[static_cast<std::size_t>(track.row)] = 1;
  for (const plan::EventTable::Idle& idle : front_->table().idle)
    has_cause_[idle.cause] = 1;
}

namespace {

/// The widest of many texts, found among the longest of them: to measure a text takes time.
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

/// Ranks have short names; the threads of a trace have what others called them.
void TimelineView::fit_header() {
  note_width_ = std::ceil(widest_of(notes_.of, QFontMetricsF(font_of(small_size))));
  note_width_ += note_width_ > 0 ? gap : 0;
  header_width_ = least_header;
  if (front_ && !front_->table().rank_names.empty())
    header_width_ = std::max(
        header_width_,
        widest_of(front_->table().rank_names, QFontMetricsF(font_of(text_size))) + beside_name);
  header_width_ = std::ceil(std::min(header_width_ + note_width_, most_header));
}

void TimelineView::lay_out() {
  legend_ = placed(legend_entries(), QFontMetricsF(font_of(small_size)), header_width_,
                   viewport()->width() - gap);
  if (!front_) {
    layout_ = {};
    verticalScrollBar()->setRange(0, 0);
    return;
  }
  const double room = std::max(0.0, rows_bottom() - rows_top);
  layout_ = lay_out_rows(front_->table(), state_, room, ghost_ != nullptr);
  const int page = std::max(1, static_cast<int>(room - layout_.pinned_height));
  verticalScrollBar()->setPageStep(page);
  verticalScrollBar()->setSingleStep(24);
  verticalScrollBar()->setRange(0, std::max(0, static_cast<int>(std::ceil(layout_.height)) - page));
}

void TimelineView::changed() {
  dirty_ = map_dirty_ = true;
  viewport()->update();
}

double TimelineView::row_y(const PlacedRow& row) const {
  return rows_top + row.top +
         (row.pinned ? 0.0 : layout_.pinned_height - verticalScrollBar()->value());
}

double TimelineView::scrolled_top() const { return rows_top + layout_.pinned_height; }

std::span<const PlacedRow> TimelineView::pinned_rows() const {
  return std::span(layout_.rows).first(layout_.pinned);
}

std::span<const PlacedRow> TimelineView::scrolled_rows() const {
  const double top = verticalScrollBar()->value();
  return layout_.rows_between(top, top + std::max(0.0, rows_bottom() - scrolled_top()));
}

std::vector<const PlacedHeading*> TimelineView::headings_in_sight() const {
  const double top = verticalScrollBar()->value(), bottom = top + rows_bottom() - scrolled_top();
  std::vector<const PlacedHeading*> seen;
  for (const PlacedHeading& heading : layout_.headings)
    if (heading.top + heading.height > top && heading.top < bottom)
      seen.push_back(&heading);
  return seen;
}

const PlacedRow* TimelineView::row_at(double y) const {
  if (y >= rows_bottom())
    return nullptr;
  for (const auto rows : {pinned_rows(), scrolled_rows()})
    for (const PlacedRow& row : rows)
      if (const double top = row_y(row);
          y >= top && y < top + row.height && (row.pinned || y >= scrolled_top()))
        return &row;
  return nullptr;
}

QRectF TimelineView::row_rect(int rank) const {
  const PlacedRow* const row = layout_.row_of(rank);
  if (row == nullptr)
    return {};
  return {0, row_y(*row), static_cast<double>(viewport()->width()), row->height};
}

QRectF TimelineView::rect_of(std::uint64_t event) const {
  const std::size_t track = front_->track_of(event);
  const PlacedRow* const row = layout_.row_of(front_->table().tracks[track].rank);
  if (row == nullptr)
    return {};
  const RowParts parts = parts_of(*row);
  for (const TrackBand& band : bands_of(*front_, row->rank, parts.front_top, parts.front_height))
    if (band.track == track) {
      const double x = scale_.x(front_->table().start[event]);
      return {header_width_ + x, row_y(*row) + band.top, scale_.x(front_->table().end[event]) - x,
              band.height};
    }
  return {};
}

std::optional<PickedEvent> TimelineView::event_under(const PlacedRow& row, QPointF at) const {
  const RowParts parts = parts_of(row);
  const double y = at.y() - row_y(row);
  const bool ghost = parts.ghost_height > 0 && y < parts.front_top;
  const PaintedTable& table = ghost ? *ghost_ : *front_;
  const double top = ghost ? parts.ghost_top : parts.front_top;
  const double height = ghost ? parts.ghost_height : parts.front_height;
  if (row.rank >= table.table().ranks)
    return {};
  const double time = scale_.time(at.x() - header_width_);
  for (const TrackBand& band : bands_of(table, row.rank, top, height))
    if (y >= band.top && y < band.top + band.height + 1)
      if (const auto event = table.event_at(band.track, time))
        return PickedEvent{ghost, *event};
  return {};
}

Picked TimelineView::pick_at(QPointF at) const {
  const PlacedRow* row = row_at(at.y());
  if (!front_ || row == nullptr || at.x() < header_width_)
    return {};
  if (const auto event = event_under(*row, at))
    return *event;
  return picked_at(*front_, row->rank, scale_.time(at.x() - header_width_));
}

double TimelineView::snapped(QPointF at) const {
  const double time = scale_.time(at.x() - header_width_);
  const PlacedRow* row = row_at(at.y());
  if (!front_ || row == nullptr)
    return time;
  double best = time, distance = snap_within * scale_.per_pixel;
  const auto tracks = front_->tracks_of(row->rank);
  const auto offer = [&](double edge) {
    if (std::abs(edge - time) < distance) {
      distance = std::abs(edge - time);
      best = edge;
    }
  };
  for (std::size_t track = tracks.begin; track < tracks.end; ++track) {
    const BusySums& sums = front_->sums(track);
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

void TimelineView::zoom(double factor, double x) {
  if (front_)
    set_scale(zoomed(scale_, factor, x, front_->length(), plot_width()));
}

void TimelineView::pan(double pixels) {
  if (front_)
    set_scale(panned(scale_, pixels, front_->length(), plot_width()));
}

void TimelineView::resizeEvent(QResizeEvent*) {
  const double seen = scale_.per_pixel;
  const bool saw_all = front_ && std::abs(scale_.first) < 1e-12;
  lay_out();
  changed();
  if (front_ && saw_all)
    fit_all();
  else
    scale_.per_pixel = seen;
  if (on_scale)
    on_scale();
}

void TimelineView::wheelEvent(QWheelEvent* event) {
  const QPoint turned = event->angleDelta();
  const double steps = (turned.y() != 0 ? turned.y() : turned.x()) / 120.0;
  if (turned.x() != 0 && turned.y() == 0)
    pan(-steps * key_pan);
  else if (event->modifiers() & Qt::ShiftModifier)
    pan(-steps * key_pan);
  else if (event->modifiers() & Qt::ControlModifier || event->position().x() < header_width_)
    verticalScrollBar()->setValue(verticalScrollBar()->value() - static_cast<int>(steps * 48));
  else
    zoom(std::pow(1.2, steps), event->position().x() - header_width_);
  event->accept();
}

void TimelineView::mousePressEvent(QMouseEvent* event) {
  drag_from_ = mouse_ = event->position();
  moved_ = false;
  if (!front_)
    return;
  drag_time_ = scale_.time(mouse_.x() - header_width_);
  if (mouse_.y() < minimap_height && mouse_.x() >= header_width_) {
    drag_ = Drag::Map;
    const double time = (mouse_.x() - header_width_) / plot_width() * front_->length();
    set_scale(centred(scale_, time, plot_width()));
  } else if (event->button() == Qt::MiddleButton || mouse_.y() < rows_top ||
             event->modifiers() & Qt::ShiftModifier) {
    drag_ = Drag::Pan;
  } else if (event->button() == Qt::LeftButton && mouse_.x() < header_width_) {
    const PlacedRow* row = row_at(mouse_.y());
    drag_ = row != nullptr ? Drag::Row : Drag::None;
    drag_rank_ = row != nullptr ? row->rank : 0;
  } else if (event->button() == Qt::LeftButton) {
    drag_ = Drag::Area;
    drag_time_ = snapped(mouse_);
  }
}

void TimelineView::mouseMoveEvent(QMouseEvent* event) {
  const QPointF before = mouse_;
  mouse_ = event->position();
  moved_ = moved_ || (mouse_ - drag_from_).manhattanLength() > 4;
  switch (drag_) {
    case Drag::Pan:
      pan(before.x() - mouse_.x());
      break;
    case Drag::Map: {
      TimeScale moved = scale_;
      moved.first += (mouse_.x() - before.x()) / plot_width() * front_->length();
      set_scale(moved);
      break;
    }
    case Drag::Area:
      select_area();
      break;
    case Drag::Row:
      viewport()->update();
      break;
    case Drag::None:
      hover();
      break;
  }
}

/// Picks the area between where the mouse was pressed and where it is now.
void TimelineView::select_area() {
  if (!moved_)
    return;
  const double time = snapped(mouse_);
  const double top = std::min(drag_from_.y(), mouse_.y()),
               bottom = std::max(drag_from_.y(), mouse_.y());
  PickedArea area{std::min(drag_time_, time), std::max(drag_time_, time), {}};
  for (const PlacedRow& row : layout_.rows)
    if (row_y(row) < bottom && row_y(row) + row.height > top)
      area.ranks.push_back(row.rank);
  pick(area);
}

/// Says what lies under the mouse.
void TimelineView::hover() {
  if (!on_hover || !front_)
    return;
  const Picked under = pick_at(mouse_);
  if (under != hovered_) {
    hovered_ = under;
    viewport()->update();
  }
  if (const auto* picked = std::get_if<PickedEvent>(&under))
    on_hover(describe(*picked));
  else if (const auto* idle = std::get_if<PickedIdle>(&under))
    on_hover(QString("%1 %2 for %3")
                 .arg(QString::fromStdString(plan::rank_name(front_->table(), idle->rank)),
                      front_->facts().is_iteration ? "idle" : "has no event",
                      time_words(idle->end - idle->start)));
  else
    on_hover({});
}

void TimelineView::mouseReleaseEvent(QMouseEvent* event) {
  const Drag was = std::exchange(drag_, Drag::None);
  if (was == Drag::Row && moved_) {
    const PlacedRow* row = row_at(event->position().y());
    RowState state = state_;
    state.order = moved_before(ordered_ranks(state_, front_->table().ranks), drag_rank_,
                               row != nullptr ? row->rank : -1);
    set_rows(std::move(state));
  } else if ((was == Drag::Area || was == Drag::Row) && !moved_) {
    pick(pick_at(event->position()));
  }
  viewport()->update();
}

void TimelineView::mouseDoubleClickEvent(QMouseEvent* event) {
  if (event->position().x() >= header_width_) {
    fit();
    return;
  }
  const PlacedRow* row = row_at(event->position().y());
  if (row == nullptr)
    return;
  RowState state = state_;
  if (!state.collapsed.erase(row->rank))
    state.collapsed.insert(row->rank);
  set_rows(std::move(state));
}

void TimelineView::keyPressEvent(QKeyEvent* event) {
  const double x = mouse_.x() > header_width_ && viewport()->underMouse()
                       ? mouse_.x() - header_width_
                       : plot_width() / 2;
  switch (event->key()) {
    case Qt::Key_W:
      zoom(key_zoom, x);
      break;
    case Qt::Key_S:
      zoom(1 / key_zoom, x);
      break;
    case Qt::Key_A:
    case Qt::Key_Left:
      pan(-key_pan);
      break;
    case Qt::Key_D:
    case Qt::Key_Right:
      pan(key_pan);
      break;
    case Qt::Key_F:
      fit();
      break;
    case Qt::Key_BracketLeft:
      walk(-1);
      break;
    case Qt::Key_BracketRight:
      walk(1);
      break;
    case Qt::Key_Escape:
      pick({});
      break;
    default:
      QAbstractScrollArea::keyPressEvent(event);
      return;
  }
  event->accept();
}

void TimelineView::leaveEvent(QEvent*) {
  hovered_ = {};
  viewport()->update();
  if (on_hover)
    on_hover({});
}

void TimelineView::scrollContentsBy(int, int) {
  dirty_ = true;
  viewport()->update();
}

bool TimelineView::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::ToolTip && front_) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const Picked under = pick_at(help->pos());
    const PlacedRow* const row =
        help->pos().x() < header_width_ ? row_at(help->pos().y()) : nullptr;
    if (row != nullptr)  // a long name is cut there
      QToolTip::showText(help->globalPos(),
                         QString::fromStdString(plan::rank_name(front_->table(), row->rank)),
                         viewport());
    else if (const auto* picked = std::get_if<PickedEvent>(&under))
      QToolTip::showText(help->globalPos(), describe(*picked), viewport());
    else if (std::get_if<PickedIdle>(&under) != nullptr && front_->facts().is_iteration)
      QToolTip::showText(help->globalPos(), "Idle: click to see what held it back.", viewport());
    else
      QToolTip::hideText();
    return true;
  }
  return QAbstractScrollArea::viewportEvent(event);
}

QString TimelineView::describe(const PickedEvent& picked) const {
  const plan::EventTable& table = (picked.ghost ? ghost_ : front_)->table();
  const plan::EventTrack& track =
      table.tracks[(picked.ghost ? ghost_ : front_)->track_of(picked.event)];
  const std::string& name = table.name_at(picked.event);
  QString words =
      QString("%1 on %2: %3 from %4 to %5")
          .arg(QString::fromStdString(name),
               QString::fromStdString(plan::rank_name(table, track.rank)),
               time_words(table.end[picked.event] - table.start[picked.event]),
               time_words(table.start[picked.event]), time_words(table.end[picked.event]));
  const QString meaning = action_words(name);
  return meaning.isEmpty() ? words : words + "\n" + meaning;
}

}  // namespace pipewright::gui
