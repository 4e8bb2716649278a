// Checks mouse actions in the window: pressing, moving, releasing, and turning the wheel.
#include "gui/support/mouse.hpp"

#include <QTableWidget>

#include "gui/support/opened_window.hpp"
#include "pipewright/gui/document/why.hpp"
#include "pipewright/gui/panels/partition_strip.hpp"
#include "pipewright/gui/panels/why_panel.hpp"

namespace mouse_test {

using namespace pipewright;
using test::OpenedWindow;

/// Returns the position of an instant on a rank's row; in the lower part of the row, because the
/// upper part shows the prediction.
QPointF place(const gui::TimelineView& view, int rank, double time) {
  const QRectF row = view.model().layout.row_rect(rank);
  return {view.model().layout.x(time), row.top() + row.height() * 0.6};
}

double middle(const gui::PaintedTable& table, std::uint64_t event) {
  return (table.table().start[event] + table.table().end[event]) / 2;
}

std::vector<int> rows_of(const gui::TimelineView& view) {
  std::vector<int> ranks;
  for (const gui::PlacedRow& row : view.model().layout.rows.rows)
    ranks.push_back(row.rank);
  return ranks;
}

TEST_CASE("A click on a bubble makes Why explain it", "[gui][mouse]") {
  OpenedWindow opened;
  const plan::EventTable& table = opened.workspace().front()->table();
  const auto longest = std::max_element(
      table.idle.begin(), table.idle.end(),
      [](const auto& a, const auto& b) { return a.end - a.start < b.end - b.start; });
  REQUIRE(longest != table.idle.end());
  opened.window.show_view("memory");
  const double middle = (longest->start + longest->end) / 2;
  test::click(*opened.timeline().viewport(), place(opened.timeline(), longest->rank, middle));
  const auto* picked = std::get_if<gui::PickedIdle>(&opened.workspace().picked());
  REQUIRE(picked);
  CHECK(picked->rank == longest->rank);
  const auto why = opened.workspace().why_idle(longest->rank, middle);
  REQUIRE(why);
  auto& panel = static_cast<gui::WhyPanel&>(*opened.window.panel("why"));
  CHECK(panel.isVisible());  // it came to the front
  CHECK(panel.spoken().contains(QString::fromStdString(why->sentence).mid(1)));
}

TEST_CASE("A click on an action shows its chain, which can be followed by links", "[gui][mouse]") {
  OpenedWindow opened;
  const auto& front = *opened.workspace().front();
  const std::uint64_t event = gui::find_event(front, 0, "0B0").value();
  test::click(*opened.timeline().viewport(), place(opened.timeline(), 0, middle(front, event)));
  CHECK(std::get<gui::PickedEvent>(opened.workspace().picked()) == gui::PickedEvent{false, event});
  auto& panel = static_cast<gui::WhyPanel&>(*opened.window.panel("why"));
  CHECK(panel.spoken().startsWith(QString::fromStdString(front.table().name_at(event))));
  auto& words = opened.find<QLabel>("why_words");
  const QString link = words.text().section("href=\"", 1, 1).section('"', 0, 0);
  REQUIRE(link.startsWith("event:"));
  emit words.linkActivated(link);
  CHECK(std::get<gui::PickedEvent>(opened.workspace().picked()).event == link.mid(6).toULongLong());
}

TEST_CASE("An area is selected across rows, and measured rank by rank", "[gui][mouse]") {
  OpenedWindow opened;
  gui::TimelineView& view = opened.timeline();
  const double length = view.front()->length();
  test::drag(*view.viewport(), place(view, 0, length * 0.2), place(view, 1, length * 0.7));
  const auto* area = std::get_if<gui::PickedArea>(&opened.workspace().picked());
  REQUIRE(area);
  CHECK(area->ranks == std::vector{0, 1});
  const double edge = 7 * view.scale().per_pixel;  // it snaps to nearby edges
  CHECK(area->first == Approx(length * 0.2).margin(edge));
  CHECK(area->last == Approx(length * 0.7).margin(edge));
  const auto& panel = static_cast<gui::WhyPanel&>(*opened.window.panel("why"));
  const gui::FigureTable& table = panel.table().table();
  REQUIRE(table.rows.size() == 3);  // including one for both
  for (std::size_t rank = 0; rank < 2; ++rank)
    CHECK(table.rows[rank].cells[1].number + table.rows[rank].cells[2].number ==
          Approx(area->last - area->first));
}

TEST_CASE("A selection within one row contains only its rank", "[gui][mouse]") {
  OpenedWindow opened;
  gui::TimelineView& view = opened.timeline();
  const double length = view.front()->length();
  test::drag(*view.viewport(), place(view, 1, length * 0.6), place(view, 1, length * 0.3));
  const auto& area = std::get<gui::PickedArea>(opened.workspace().picked());
  CHECK(area.ranks == std::vector{1});
  CHECK(area.first < area.last);  // dragged from right to left
}

TEST_CASE("A row is dragged by its name before another", "[gui][mouse]") {
  OpenedWindow opened(test::opened_plan);
  gui::TimelineView& view = opened.timeline();
  REQUIRE(rows_of(view) == std::vector{0, 1, 2, 3});
  const auto name = [&](int rank) {
    return QPointF(20, view.model().layout.row_rect(rank).center().y());
  };
  test::drag(*view.viewport(), name(3), name(1));
  CHECK(rows_of(view) == std::vector{0, 3, 1, 2});
  CHECK(std::holds_alternative<std::monostate>(opened.workspace().picked()));
  test::double_click(*view.viewport(), name(3));
  CHECK(view.model().rows.collapsed == std::set{3});
}

TEST_CASE("The wheel zooms around the mouse", "[gui][mouse]") {
  OpenedWindow opened;
  gui::TimelineView& view = opened.timeline();
  const gui::TimeScale all = view.scale();
  const QPointF at = place(view, 0, view.front()->length() * 0.7);
  const double x = at.x() - view.model().layout.plot_left;
  test::wheel(*view.viewport(), at, 5);
  CHECK(view.scale().per_pixel == Approx(all.per_pixel / std::pow(1.2, 5)));
  CHECK(view.scale().time(x) == Approx(all.time(x)));
  test::wheel(*view.viewport(), at, 1, Qt::ShiftModifier);
  CHECK(view.scale().per_pixel == Approx(all.per_pixel / std::pow(1.2, 5)));
  CHECK(view.scale().time(x) < all.time(x));  // pans to earlier times
  test::wheel(*view.viewport(), at, -50);
  CHECK(view.scale().per_pixel >= all.per_pixel);
}

TEST_CASE("The ruler pans, and the map moves to where it is pressed", "[gui][mouse]") {
  OpenedWindow opened;
  gui::TimelineView& view = opened.timeline();
  const double length = view.front()->length();
  view.show_time(length * 0.4, length * 0.6);
  const gui::TimeScale before = view.scale();
  const QPointF ruler(view.model().layout.plot_left + 300, 55);
  test::drag(*view.viewport(), ruler, ruler - QPointF(100, 0));
  CHECK(view.scale().first == Approx(before.first + 100 * before.per_pixel));
  CHECK(view.scale().per_pixel == before.per_pixel);
  test::click(*view.viewport(),
              {view.model().layout.plot_left + view.model().layout.plot_width() * 0.25, 20});
  CHECK(view.scale().time(view.model().layout.plot_width() / 2) == Approx(length * 0.25));
}

TEST_CASE("The status line describes the item under the mouse", "[gui][mouse]") {
  OpenedWindow opened;
  gui::TimelineView& view = opened.timeline();
  QString said;
  view.on_hover = [&said](const QString& words) { said = words; };
  const auto& front = *view.front();
  const std::uint64_t event = gui::find_event(front, 0, "0B0").value();
  const QPointF at = place(view, 0, middle(front, event));
  test::hover(*view.viewport(), at);
  CHECK(said == view.model().tables.describe(gui::PickedEvent{false, event}));
  CHECK(test::tooltip(*view.viewport(), at) == said);
  CHECK(test::tooltip(*view.viewport(), {20, at.y()}) == "rank 0");
}

TEST_CASE("Dragging a stage boundary is one step to undo", "[gui][mouse]") {
  OpenedWindow opened(test::opened_plan);
  auto& strip = opened.show<gui::PartitionStrip>("partition");
  const auto boundaries = [&] { return opened.workspace().answer()->plan.partition.boundaries; };
  const std::vector<int> before = boundaries();
  REQUIRE(before[1] > 1);
  QSlider& border = *strip.border(1);
  const double was = opened.workspace().answer()->figures.iteration_s;
  test::drag(border, border.rect().center(), border.rect().center() - QPointF(400, 0));
  CHECK(boundaries()[1] == 1);  // a stage keeps a layer
  CHECK(boundaries()[2] == before[2]);
  CHECK(opened.workspace().answer()->figures.iteration_s != was);
  opened.trigger("edit.undo");
  CHECK(boundaries() == before);
  CHECK_FALSE(opened.workspace().history().can_undo());
}

TEST_CASE("A layer is dragged to the adjacent stage", "[gui][mouse]") {
  OpenedWindow opened(test::opened_plan);
  auto& strip = opened.show<gui::PartitionStrip>("partition");
  const std::vector<int> before = opened.workspace().answer()->plan.partition.boundaries;
  REQUIRE(before[1] > 1);
  // From just before the boundary to just after it: the last layer of stage 0.
  const QRect border = strip.border(1)->geometry();
  const double y = border.center().y();
  test::drag(strip, {border.left() - 4.0, y}, {border.right() + 20.0, y});
  std::vector<int> after = before;
  --after[1];
  CHECK(opened.workspace().answer()->plan.partition.boundaries == after);
}

TEST_CASE("A click on a table row shows its events in the timeline", "[gui][mouse]") {
  OpenedWindow opened;
  opened.window.resize(1920, 1000);
  for (const char* name : {"residual_causes", "residual_actions"}) {
    opened.show<QWidget>("residuals");  // a click brings Why to the front
    auto& table = opened.find<QTableWidget>(name);
    REQUIRE(table.rowCount() > 0);
    opened.workspace().pick({});
    test::click(*table.viewport(), table.visualItemRect(table.item(0, 0)).center());
    CAPTURE(name);
    CHECK_FALSE(std::holds_alternative<std::monostate>(opened.workspace().picked()));
    CHECK(opened.timeline().model().marks.picked == opened.workspace().picked());
  }
}

}  // namespace mouse_test
