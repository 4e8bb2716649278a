#include "pipewright/gui/timeline/timeline_access.hpp"

#include <QAccessible>
#include <QAccessibleWidget>
#include <algorithm>
#include <map>
#include <utility>

#include "pipewright/gui/look/words.hpp"
#include "pipewright/gui/timeline/timeline_view.hpp"

namespace pipewright::gui {
namespace {

/// Maximum number of parts of a row; zooming in shows others.
constexpr std::size_t most_parts = 200;
constexpr double narrowest_part = 1;  // pixels; a narrower gap between two actions does not count

QString rank_words(const plan::EventTable& table, int rank) {
  return QString::fromStdString(plan::rank_name(table, rank));
}

/// Returns "most of it warm-up"; empty if causes are unknown.
QString most_of_idle(const PaintedTable& table, int rank, double first, double last) {
  const ClassTimes causes = table.idle(rank).between(first, last);
  const auto most = std::max_element(causes.begin(), causes.end());
  const auto cause = static_cast<std::size_t>(most - causes.begin());
  if (*most <= 0 || cause >= plan::idle_causes().size())
    return {};
  return QString("most of it %1").arg(QString::fromStdString(plan::idle_causes()[cause]));
}

QString with_comma(const QString& words, const QString& more) {
  return more.isEmpty() ? words : words + ", " + more;
}

QString row_words(const PaintedTable& table, int rank, double first, double last) {
  const double seen = last - first;
  if (seen <= 0)
    return rank_words(table.table(), rank);
  const double busy = table.busy(rank, first, last);
  if (!table.facts().is_iteration)
    return QString("%1: busy %2").arg(rank_words(table.table(), rank), percent_words(busy / seen));
  return with_comma(QString("%1: busy %2, idle %3")
                        .arg(rank_words(table.table(), rank), percent_words(busy / seen),
                             time_words(std::max(0.0, seen - busy))),
                    most_of_idle(table, rank, first, last));
}

QString words_of(const TimelineView& view, const Picked& picked) {
  if (const auto* event = std::get_if<PickedEvent>(&picked))
    return view.model().tables.describe(*event).replace('\n', ", ");
  const PaintedTable& table = *view.front();
  if (const auto* idle = std::get_if<PickedIdle>(&picked))
    return with_comma(QString("%1 %2 for %3, from %4 to %5")
                          .arg(rank_words(table.table(), idle->rank),
                               table.facts().is_iteration ? "is idle" : "has no event",
                               time_words(idle->end - idle->start), time_words(idle->start),
                               time_words(idle->end)),
                      most_of_idle(table, idle->rank, idle->start, idle->end));
  if (const auto* area = std::get_if<PickedArea>(&picked)) {
    QString words = QString("%1 selected, from %2 to %3")
                        .arg(time_words(area->last - area->first), time_words(area->first),
                             time_words(area->last));
    for (const int rank : area->ranks)
      words += "; " + row_words(table, rank, area->first, area->last);
    return words;
  }
  return {};
}

int index_in(const QAccessibleInterface& parent, const QAccessibleInterface* child) {
  for (int index = 0; index < parent.childCount(); ++index)
    if (parent.child(index) == child)
      return index;
  return -1;
}

QAccessibleInterface* child_under(const QAccessibleInterface& parent, QPoint at) {
  for (int index = 0; index < parent.childCount(); ++index)
    if (QAccessibleInterface* child = parent.child(index); child->rect().contains(at))
      return child;
  return nullptr;
}

/// Returns the visible part of a box in screen coordinates.
QRect on_screen(const TimelineView& view, const QRectF& seen, const QRectF& box) {
  const QRect on_view = box.intersected(seen).toAlignedRect();
  return {view.viewport()->mapToGlobal(on_view.topLeft()), on_view.size()};
}

class RowAccess;

/// An action, or an idle interval.
class PartAccess final : public QAccessibleInterface, public QAccessibleActionInterface {
 public:
  PartAccess(TimelineView& view, RowAccess& row, Picked picked)
      : view_(&view), row_(&row), picked_(std::move(picked)) {}

  const Picked& picked() const { return picked_; }
  bool isValid() const override { return view_ != nullptr; }
  QObject* object() const override { return nullptr; }
  QAccessibleInterface* parent() const override;
  QAccessibleInterface* child(int) const override { return nullptr; }
  QAccessibleInterface* childAt(int, int) const override { return nullptr; }
  int childCount() const override { return 0; }
  int indexOfChild(const QAccessibleInterface*) const override { return -1; }
  QAccessible::Role role() const override { return QAccessible::Button; }
  QString text(QAccessible::Text kind) const override {
    return kind == QAccessible::Name ? words_of(*view_, picked_) : QString();
  }
  void setText(QAccessible::Text, const QString&) override {}
  QAccessible::State state() const override {
    QAccessible::State state;
    state.focusable = state.selectable = true;
    state.selected = view_->model().marks.picked == picked_;
    state.focused = state.selected && view_->hasFocus();
    return state;
  }
  QRect rect() const override {
    const TimelineLayout& at = view_->model().layout;
    const QRectF plot(at.plot_left, 0, at.plot_width(), at.viewport.height());
    return on_screen(*view_, plot, view_->model().rect_of(picked_));
  }
  void* interface_cast(QAccessible::InterfaceType type) override {
    return type == QAccessible::ActionInterface ? static_cast<QAccessibleActionInterface*>(this)
                                                : nullptr;
  }
  QStringList actionNames() const override { return {pressAction(), setFocusAction()}; }
  void doAction(const QString& name) override {
    if (name == setFocusAction() || name == pressAction())
      view_->setFocus();
    if (name == pressAction())
      view_->pick(Picked(picked_));  // a copy: the selection may delete this part
  }
  QStringList keyBindingsForAction(const QString&) const override { return {}; }

 private:
  TimelineView* view_;
  RowAccess* row_;
  Picked picked_;
};

class TimelineAccess;

class RowAccess final : public QAccessibleInterface {
 public:
  RowAccess(TimelineView& view, TimelineAccess& timeline, int rank)
      : view_(&view), timeline_(&timeline), rank_(rank) {}
  ~RowAccess() override { drop_parts(); }

  int rank() const { return rank_; }
  bool isValid() const override { return view_->front() != nullptr; }
  QObject* object() const override { return nullptr; }
  QAccessibleInterface* parent() const override;
  int childCount() const override { return static_cast<int>(parts().size()); }
  QAccessibleInterface* child(int index) const override {
    const auto& all = parts();
    return index >= 0 && std::cmp_less(index, all.size())
               ? QAccessible::accessibleInterface(all[static_cast<std::size_t>(index)])
               : nullptr;
  }
  int indexOfChild(const QAccessibleInterface* part) const override {
    return index_in(*this, part);
  }
  QAccessibleInterface* childAt(int x, int y) const override { return child_under(*this, {x, y}); }
  QAccessible::Role role() const override { return QAccessible::ListItem; }
  void setText(QAccessible::Text, const QString&) override {}
  QString text(QAccessible::Text kind) const override {
    if (!view_->front())
      return {};
    const auto [first, last] = view_->model().seen();
    if (kind == QAccessible::Name)
      return row_words(*view_->front(), rank_, first, last);
    if (kind == QAccessible::Description && std::cmp_equal(childCount(), most_parts))
      return QString("its first %1 actions and gaps in view; zoom in for the others")
          .arg(most_parts);
    return {};
  }
  QAccessible::State state() const override {
    QAccessible::State state;
    state.focusable = true;
    state.offscreen = rect().isEmpty();
    return state;
  }
  QRect rect() const override {
    return on_screen(*view_, QRectF(view_->viewport()->rect()),
                     view_->model().layout.row_rect(rank_));
  }

  /// Returns the selected part if it is in view.
  QAccessibleInterface* part_of(const Picked& picked) const {
    for (int index = 0; index < childCount(); ++index)
      if (static_cast<PartAccess*>(child(index))->picked() == picked)
        return child(index);
    return nullptr;
  }

 private:
  void drop_parts() const {
    for (const QAccessible::Id part : std::exchange(parts_, {}))
      QAccessible::deleteAccessibleInterface(part);
  }
  const std::vector<QAccessible::Id>& parts() const {
    if (made_of_ != view_->front() || made_at_ != view_->scale() ||
        made_width_ != view_->model().layout.plot_width()) {
      drop_parts();
      made_of_ = view_->front();
      made_at_ = view_->scale();
      made_width_ = view_->model().layout.plot_width();
      if (made_of_ != nullptr)
        for (Picked& picked : parts_in_view())
          parts_.push_back(QAccessible::registerAccessibleInterface(
              new PartAccess(const_cast<TimelineView&>(*view_), const_cast<RowAccess&>(*this),
                             std::move(picked))));
    }
    return parts_;
  }

  /// Visible actions of one rank, and the idle time before the first and after the last.
  struct Seen {
    std::vector<std::uint64_t> events;
    double idle_from = 0, idle_until = 0;
  };
  Seen seen_events() const {
    const PaintedTable& table = *view_->front();
    const auto [first, last] = view_->model().seen();
    Seen all{{}, 0, table.length()};
    const auto tracks = table.tracks_of(rank_);
    for (std::size_t track = tracks.begin; track < tracks.end; ++track) {
      if (table.table().tracks[track].row != plan::Row::Compute)
        continue;
      const BusySums& sums = table.sums(track);
      std::uint64_t event = sums.begun_before(first);
      if (event > 0)
        all.idle_from = std::max(all.idle_from, sums.end(event - 1));
      if (event > 0 && sums.end(event - 1) > first)
        --event;
      for (std::size_t taken = 0;
           event < sums.size() && sums.start(event) < last && taken < most_parts; ++event, ++taken)
        all.events.push_back(table.table().tracks[track].begin + event);
      if (event < sums.size())
        all.idle_until = std::min(all.idle_until, sums.start(event));
    }
    const auto& start = table.table().start;
    std::sort(all.events.begin(), all.events.end(),
              [&](std::uint64_t a, std::uint64_t b) { return start[a] < start[b]; });
    return all;
  }

  /// Returns compute actions in order of time, and the gaps between them.
  std::vector<Picked> parts_in_view() const {
    const auto& start = view_->front()->table().start;
    const auto& end = view_->front()->table().end;
    const Seen all = seen_events();
    const auto [first, last] = view_->model().seen();
    const double least = narrowest_part * view_->scale().per_pixel;
    std::vector<Picked> parts;
    const auto add_gap = [&, first = first, last = last](double from, double to) {
      if (to - from >= least && from < last && to > first)
        parts.emplace_back(
            PickedIdle{rank_, (std::max(from, first) + std::min(to, last)) / 2, from, to});
    };
    double busy_until = all.idle_from;
    if (!all.events.empty() && start[all.events.front()] < all.idle_from)
      busy_until = start[all.events.front()];
    for (const std::uint64_t event : all.events) {
      add_gap(busy_until, start[event]);
      parts.emplace_back(PickedEvent{false, event});
      busy_until = std::max(busy_until, end[event]);
    }
    add_gap(busy_until, std::max(all.idle_until, busy_until));
    if (parts.size() > most_parts)
      parts.resize(most_parts);
    return parts;
  }

  TimelineView* view_;
  TimelineAccess* timeline_;
  int rank_;
  mutable std::shared_ptr<PaintedTable> made_of_;  // kept alive, so that no other table gets its
                                                   // address
  mutable TimeScale made_at_;
  mutable double made_width_ = 0;
  mutable std::vector<QAccessible::Id> parts_;
};

class TimelineAccess final : public QAccessibleWidget {
 public:
  explicit TimelineAccess(TimelineView& view)
      : QAccessibleWidget(&view, QAccessible::List), view_(&view) {}
  ~TimelineAccess() override {
    for (const auto& [rank, id] : rows_)
      QAccessible::deleteAccessibleInterface(id);
  }

  int childCount() const override {
    return static_cast<int>(view_->model().layout.rows.rows.size());
  }
  QAccessibleInterface* child(int index) const override {
    const auto& rows = view_->model().layout.rows.rows;
    return index >= 0 && std::cmp_less(index, rows.size())
               ? row(rows[static_cast<std::size_t>(index)].rank)
               : nullptr;
  }
  int indexOfChild(const QAccessibleInterface* of) const override { return index_in(*this, of); }
  QAccessibleInterface* childAt(int x, int y) const override { return child_under(*this, {x, y}); }
  QAccessibleInterface* focusChild() const override { return picked_part(); }
  QString text(QAccessible::Text kind) const override {
    if (!view_->front() || (kind != QAccessible::Description && kind != QAccessible::Value))
      return QAccessibleWidget::text(kind);
    if (kind == QAccessible::Value)
      return words_of(*view_, view_->model().marks.picked);
    const plan::EventTable& table = view_->front()->table();
    return QString("%1 ranks, %2; W and S zoom, A and D pan, [ and ] walk the actions")
        .arg(table.ranks)
        .arg(time_words(table.length.value));
  }

  QAccessibleInterface* row(int rank) const {
    auto& id = rows_[rank];
    if (id == 0)
      id = QAccessible::registerAccessibleInterface(
          new RowAccess(*view_, const_cast<TimelineAccess&>(*this), rank));
    return QAccessible::accessibleInterface(id);
  }
  QAccessibleInterface* picked_part() const {
    const Picked& picked = view_->model().marks.picked;
    const auto* event = std::get_if<PickedEvent>(&picked);
    const auto span = view_->model().tables.span_of(picked);
    if (!span || std::holds_alternative<PickedArea>(picked) || (event != nullptr && event->ghost))
      return nullptr;
    return static_cast<RowAccess*>(row(span->rank))->part_of(picked);
  }

 private:
  TimelineView* view_;
  mutable std::map<int, QAccessible::Id> rows_;  // by rank
};

QAccessibleInterface* PartAccess::parent() const { return row_; }
QAccessibleInterface* RowAccess::parent() const { return timeline_; }

QAccessibleInterface* access_of(const QString&, QObject* object) {
  // Without Qt's meta objects a class has the name of its base class.
  auto* view = dynamic_cast<TimelineView*>(object);
  return view != nullptr ? new TimelineAccess(*view) : nullptr;
}

}  // namespace

void install_timeline_access() {
  static const bool installed = [] {
    QAccessible::installFactory(access_of);
    return true;
  }();
  static_cast<void>(installed);
}

void announce_pick(TimelineView& view) {
  if (!QAccessible::isActive())
    return;
  const auto* timeline =
      dynamic_cast<TimelineAccess*>(QAccessible::queryAccessibleInterface(&view));
  if (timeline == nullptr)
    return;
  if (QAccessibleInterface* part = timeline->picked_part()) {
    QAccessibleEvent focus(part, QAccessible::Focus);
    QAccessible::updateAccessibility(&focus);
  } else {
    QAccessibleValueChangeEvent value(&view, words_of(view, view.model().marks.picked));
    QAccessible::updateAccessibility(&value);
  }
}

}  // namespace pipewright::gui
