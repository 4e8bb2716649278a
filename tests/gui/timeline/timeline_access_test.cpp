#include <QAccessible>
#include <QApplication>

#include "gui/support/tables.hpp"
#include "pipewright/gui/timeline/timeline_view.hpp"
#include "support/catch.hpp"

namespace timeline_access_test {

using namespace pipewright;
using gui::TimelineView;

struct Shown {
  TimelineView view;
  QAccessibleInterface* access;

  explicit Shown(const plan::Timeline& timeline = test::small_pipeline()) {
    view.resize(900, 400);
    view.show_tables(std::make_shared<gui::PaintedTable>(plan::table_of(timeline)), {});
    view.show();
    QApplication::processEvents();
    view.fit_all();
    access = QAccessible::queryAccessibleInterface(&view);
  }
};

std::string name_of(QAccessibleInterface* at) { return at->text(QAccessible::Name).toStdString(); }

QAccessibleInterface* part_named(QAccessibleInterface* row, const std::string& beginning) {
  for (int index = 0; index < row->childCount(); ++index)
    if (name_of(row->child(index)).starts_with(beginning))
      return row->child(index);
  return nullptr;
}

void press(QAccessibleInterface* part) {
  part->actionInterface()->doAction(QAccessibleActionInterface::pressAction());
}

TEST_CASE("A timeline is a list of rows that describe their busy time", "[gui][access]") {
  Shown shown;
  REQUIRE(shown.access);
  CHECK(shown.access->role() == QAccessible::List);
  CHECK(shown.access->text(QAccessible::Name) == "Timeline");
  CHECK(shown.access->text(QAccessible::Description).startsWith("4 ranks, "));
  REQUIRE(shown.access->childCount() == 4);
  // Each rank computes for 18 of 29.4 ms.
  CHECK(name_of(shown.access->child(3)).starts_with("rank 3: busy "));
  CHECK(name_of(shown.access->child(3)).find(", most of it ") != std::string::npos);
  for (int row = 0; row < 4; ++row) {
    QAccessibleInterface* at = shown.access->child(row);
    CHECK(at->parent() == shown.access);
    CHECK(shown.access->indexOfChild(at) == row);
    CHECK(shown.access->childAt(at->rect().center().x(), at->rect().center().y()) == at);
  }
}

TEST_CASE("Rows are listed in display order", "[gui][access]") {
  Shown shown;
  shown.view.set_rows({.order = {3, 2}, .pinned = {}, .collapsed = {}, .filter = {}});
  CHECK(name_of(shown.access->child(0)).starts_with("rank 3"));
  shown.view.set_rows({.order = {}, .pinned = {}, .collapsed = {}, .filter = "1"});
  REQUIRE(shown.access->childCount() == 1);
  CHECK(name_of(shown.access->child(0)).starts_with("rank 1"));
}

TEST_CASE("Actions and gaps of a row are buttons that select them", "[gui][access]") {
  Shown shown;
  gui::Picked picked;
  shown.view.on_picked = [&](const gui::Picked& now) { picked = now; };
  QAccessibleInterface* row = shown.access->child(3);
  QAccessibleInterface* action = part_named(row, "3F0 on rank 3: 1.000 ms");
  REQUIRE(action);
  CHECK(name_of(action).ends_with("stage 3: forward of microbatch 0"));
  CHECK(action->rect() ==
        QRect(shown.view.viewport()->mapToGlobal(
                  shown.view.model()
                      .event_rect(shown.view.front()
                                      ->table()
                                      .tracks[shown.view.front()->tracks_of(3).begin]
                                      .begin)
                      .toAlignedRect()
                      .topLeft()),
              action->rect().size()));
  press(action);
  REQUIRE(std::holds_alternative<gui::PickedEvent>(picked));
  CHECK(shown.view.front()->table().name_at(std::get<gui::PickedEvent>(picked).event) == "3F0");
  CHECK(action->state().selected);
  CHECK(shown.access->focusChild() == action);

  QAccessibleInterface* gap = part_named(row, "rank 3 is idle for 3.600 ms");
  REQUIRE(gap);
  CHECK(name_of(gap).ends_with("most of it warm-up"));
  press(gap);
  REQUIRE(std::holds_alternative<gui::PickedIdle>(picked));
  CHECK(std::get<gui::PickedIdle>(picked).end == Approx(3.6e-3));
  CHECK(!action->state().selected);
}

TEST_CASE("Gaps and actions of a row cover the whole view", "[gui][access]") {
  Shown shown;
  const double length = shown.view.front()->length();
  for (const auto& [first, last] :
       {std::pair{0.0, length}, std::pair{0.3 * length, 0.5 * length}}) {
    shown.view.set_scale(gui::fitted(first, last, shown.view.model().layout.plot_width()));
    for (int row = 0; row < 4; ++row) {
      double covered = 0;
      QAccessibleInterface* at = shown.access->child(row);
      for (int index = 0; index < at->childCount(); ++index)
        covered += at->child(index)->rect().width();
      CAPTURE(row, first);
      CHECK(covered ==
            Approx(shown.view.model().layout.plot_width()).margin(2.0 * at->childCount()));
    }
  }
}

TEST_CASE("A row of a thousand actions lists a part of them, and more when zoomed in",
          "[gui][access]") {
  plan::Timeline many{
      .name = "many", .ranks = 1, .length = plan::Seconds{10}, .spans = {}, .memory = {}};
  for (int i = 0; i < 1000; ++i)
    many.spans.push_back({0, plan::Row::Compute, "0F" + std::to_string(i), plan::Seconds{i * 0.01},
                          plan::Seconds{i * 0.01 + 0.01}});
  Shown shown(many);
  QAccessibleInterface* row = shown.access->child(0);
  CHECK(row->childCount() == 200);
  CHECK(row->text(QAccessible::Description).contains("zoom in"));
  shown.view.show_time(5, 5.1);
  CHECK(row->childCount() < 20);
  CHECK(part_named(row, "0F505 "));
  CHECK(row->text(QAccessible::Description).isEmpty());
}

TEST_CASE("A wider view has more parts", "[gui][access]") {
  Shown shown;
  shown.view.show_time(0.005, 0.008);
  QAccessibleInterface* row = shown.access->child(0);
  const int before = row->childCount();
  shown.view.resize(3600, 400);
  QApplication::processEvents();
  CHECK(row->childCount() > before);
}

TEST_CASE("A selection is described in a sentence", "[gui][access]") {
  Shown shown;
  const auto said = [&] { return shown.access->text(QAccessible::Value).toStdString(); };
  CHECK(said().empty());
  shown.view.pick(gui::PickedArea{0, 5e-3, {0, 3}});
  CHECK(said().starts_with("5.000 ms selected, from 0 ms to 5.000 ms; rank 0: busy "));
  CHECK(said().find("; rank 3: busy 28.0 %, idle 3.600 ms, most of it warm-up") !=
        std::string::npos);
}

TEST_CASE("Another timeline has other parts, and an absent one is accepted", "[gui][access]") {
  Shown shown;
  CHECK(shown.access->child(0)->childCount() > 0);
  shown.view.show_tables({}, {});
  CHECK(shown.access->childCount() == 0);
  CHECK(shown.access->text(QAccessible::Value).isEmpty());
  CHECK(shown.access->focusChild() == nullptr);
  plan::Timeline idle{
      .name = "idle", .ranks = 1, .length = plan::Seconds{1}, .spans = {}, .memory = {}};
  shown.view.show_tables(std::make_shared<gui::PaintedTable>(plan::table_of(idle)), {});
  shown.view.fit_all();
  REQUIRE(shown.access->childCount() == 1);
  REQUIRE(shown.access->child(0)->childCount() == 1);
  CHECK(name_of(shown.access->child(0)->child(0)).starts_with("rank 0 is idle for 1.000 s"));
}

TEST_CASE("The focus follows the keys", "[gui][access]") {
  Shown shown;
  CHECK(shown.access->focusChild() == nullptr);
  for (const char* action : {"0F0 on rank 0", "0F1 on rank 0", "0F2 on rank 0"}) {
    shown.view.walk(1);
    REQUIRE(shown.access->focusChild());
    CHECK(name_of(shown.access->focusChild()).starts_with(action));
    CHECK(shown.access->text(QAccessible::Value).startsWith(action));
  }
}

}  // namespace timeline_access_test
