#include "pipewright/gui/timeline/timeline_view.hpp"

#include <QKeyEvent>
#include <QScrollBar>
#include <cmath>
#include <utility>

#include "pipewright/gui/timeline/timeline_access.hpp"
#include "pipewright/gui/timeline/timeline_painters.hpp"

namespace pipewright::gui {

TimelineView::TimelineView(QWidget* parent) : QAbstractScrollArea(parent) {
  install_timeline_access();
  setObjectName("timeline");
  setAccessibleName("Timeline");
  setFocusPolicy(Qt::StrongFocus);
  setFrameShape(QFrame::NoFrame);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  viewport()->setMouseTracking(true);
  viewport()->setAttribute(Qt::WA_OpaquePaintEvent);
  model_.layout.viewport = viewport()->size();
}

void TimelineView::show_tables(std::shared_ptr<PaintedTable> front,
                               std::shared_ptr<PaintedTable> ghost) {
  const auto& before = model_.tables.front;
  const bool keeps = before && front && before->length() > 0 &&
                     front->length() / before->length() < 2 &&
                     before->length() / front->length() < 2 && !model_.shows_whole();
  model_.show({std::move(front), std::move(ghost)});
  refresh();
  if (!keeps)
    fit_all();
}

void TimelineView::set_theme(const Theme& theme) {
  model_.theme = &theme;
  refresh();
}

void TimelineView::set(bool TimelineModel::*option, bool on) {
  model_.*option = on;
  refresh();
}

void TimelineView::set_rows(RowState state) {
  model_.rows = std::move(state);
  refresh();
}

void TimelineView::set_notes(RowNotes notes) {
  const bool showed_whole = model_.shows_whole();
  model_.notes = std::move(notes);
  model_.fit_headers();
  refresh();
  if (showed_whole)
    fit_all();
}

void TimelineView::set_scale(TimeScale scale) {
  if (scale == model_.layout.scale)
    return;
  model_.layout.scale = scale;
  image_.rows_changed();
  viewport()->update();
  if (on_scale)
    on_scale();
}

void TimelineView::fit_all() {
  if (model_.tables.front)
    set_scale(model_.whole());
}

void TimelineView::show_time(double first, double last) {
  const double margin = (last - first) * 0.05;
  set_scale(fitted(first - margin, last + margin, model_.layout.plot_width()));
}

void TimelineView::fit() {
  const TimeScale before = scale();
  if (const auto span = model_.tables.span_of(model_.marks.picked))
    show_time(span->first, span->last);
  if (scale() == before)
    fit_all();
}

void TimelineView::pick(Picked picked) {
  if (picked == model_.marks.picked)
    return;
  model_.marks.pick(std::move(picked));
  viewport()->update();
  if (on_picked)
    on_picked(model_.marks.picked);
  announce_pick(*this);
}

void TimelineView::hover(const Picked& under) {
  if (!on_hover)
    return;
  if (under != model_.marks.hovered) {
    model_.marks.hovered = under;
    viewport()->update();
  }
  on_hover(model_.tables.describe(under));
}

void TimelineView::walk(int by) {
  if (const auto next = model_.step(by))
    go_to(*next);
}

void TimelineView::go_to(const PickedEvent& event) {
  pick(event);
  const TimelineLayout& at = model_.layout;
  const PickedSpan span = *model_.tables.span_of(event);
  if (at.scale.x(span.last) > at.plot_width() || at.scale.x(span.first) < 0)
    set_scale(centered(at.scale, (span.first + span.last) / 2, at.plot_width()));
}

void TimelineView::set_arrows(std::vector<Arrow> arrows) {
  model_.marks.arrows = std::move(arrows);
  viewport()->update();
}

void TimelineView::set_highlight(std::vector<std::uint64_t> events) {
  model_.marks.highlight = std::move(events);
  viewport()->update();
}

void TimelineView::show_row(int rank) {
  const PlacedRow* const row = model_.layout.rows.row_of(rank);
  if (row == nullptr)
    return;
  model_.marks.row = rank;
  QScrollBar* const bar = verticalScrollBar();
  if (!row->pinned &&
      (row->top < bar->value() || row->top + row->height > bar->value() + bar->pageStep()))
    bar->setValue(static_cast<int>(row->top + row->height / 2) - bar->pageStep() / 2);
  viewport()->update();
}

void TimelineView::reveal(const Picked& picked) {
  const auto span = model_.tables.span_of(picked);
  if (!span || std::holds_alternative<PickedArea>(picked))
    return;
  const QRectF row = model_.layout.row_rect(span->rank);
  const double above = row.top() - TimelineLayout::rows_top;
  const double below = row.bottom() - viewport()->height();
  if (above < 0 || below > 0)
    verticalScrollBar()->setValue(verticalScrollBar()->value() +
                                  static_cast<int>(above < 0 ? above : below));
  set_scale(model_.revealing(*span));
}

void TimelineView::refresh() {
  model_.lay_out(viewport()->size());
  const TimelineLayout& at = model_.layout;
  QScrollBar* const bar = verticalScrollBar();
  const int page = std::max(1, static_cast<int>(at.rows_bottom() - at.scrolled_top()));
  bar->setPageStep(page);
  bar->setSingleStep(24);
  bar->setRange(0, std::max(0, static_cast<int>(std::ceil(at.rows.height)) - page));
  model_.layout.viewport = viewport()->size();  // a scroll bar takes some of it
  image_.all_changed();
  viewport()->update();
}

void TimelineView::resizeEvent(QResizeEvent*) {
  TimeScale& scale = model_.layout.scale;
  const double seen = scale.per_pixel;
  const bool saw_all = model_.tables.front && std::abs(scale.first) < 1e-12;
  refresh();
  if (saw_all)
    fit_all();
  else
    scale.per_pixel = seen;
  if (on_scale)
    on_scale();
}

void TimelineView::keyPressEvent(QKeyEvent* event) {
  if (input_.press_key(event->key()))
    event->accept();
  else
    QAbstractScrollArea::keyPressEvent(event);
}

void TimelineView::leaveEvent(QEvent*) { hover({}); }

void TimelineView::scrollContentsBy(int, int) {
  model_.layout.scroll = verticalScrollBar()->value();
  image_.rows_changed();
  viewport()->update();
}

bool TimelineView::viewportEvent(QEvent* event) {
  return input_.handle(*event) || QAbstractScrollArea::viewportEvent(event);
}

void TimelineView::paintEvent(QPaintEvent*) {
  QPainter painter(viewport());
  const TimelineLayout& at = model_.layout;
  const Theme& theme = *model_.theme;
  if (!front() || front()->table().ranks == 0) {
    painter.fillRect(viewport()->rect(), theme.plot);
    painter.setPen(theme.soft_text);
    painter.setFont(font_of(heading_size));
    painter.drawText(viewport()->rect(), Qt::AlignCenter, empty_text);
    return;
  }
  image_.update(model_, viewport()->devicePixelRatioF());
  image_.paint(painter);
  painter.setClipRect(
      QRectF(at.plot_left, TimelineLayout::rows_top, at.plot_width() + gap, at.viewport.height()));
  image_.paint_labels(painter, model_);
  paint_marks(painter, model_);
  painter.setClipping(false);
  paint_margins(painter, model_, image_.map());
  if (const auto y = input_.dragged_row_y()) {
    painter.setPen(QPen(theme.selection, 2));
    painter.drawLine(QPointF(0, *y), QPointF(at.plot_left, *y));
  }
}

}  // namespace pipewright::gui
