// Performs a user's actions in the window, through the interface for assistive technology.
#include <QAccessible>
#include <map>
#include <set>

#include "gui/support/opened_window.hpp"
#include "pipewright/gui/panels/figure_table.hpp"

namespace person_test {

using namespace pipewright;
using gui::MainWindow;

using test::opened_plan;
using test::patience_ms;

struct Opened : test::OpenedWindow {
  using OpenedWindow::OpenedWindow;
  QAccessibleInterface* timeline() {
    return QAccessible::queryAccessibleInterface(&window.timeline());
  }
};

/// Returns the first element in depth-first order whose name contains a text, or null.
QAccessibleInterface* found(QAccessibleInterface* in, const std::string& text) {
  if (in == nullptr || in->text(QAccessible::Name).toStdString().find(text) != std::string::npos)
    return in;
  for (int index = 0; index < in->childCount(); ++index)
    if (QAccessibleInterface* at = found(in->child(index), text))
      return at;
  return nullptr;
}

/// Returns the first element with this role.
QAccessibleInterface* found(QAccessibleInterface* in, QAccessible::Role role) {
  if (in == nullptr || in->role() == role)
    return in;
  for (int index = 0; index < in->childCount(); ++index)
    if (QAccessibleInterface* at = found(in->child(index), role))
      return at;
  return nullptr;
}

/// Returns a panel by its name, which must have content.
QAccessibleInterface* panel(MainWindow& window, const char* name) {
  auto* widget = window.findChild<QWidget*>(name);
  REQUIRE(widget);
  QAccessibleInterface* access = QAccessible::queryAccessibleInterface(widget);
  CAPTURE(name);
  REQUIRE(access->childCount() > 0);
  return access;
}

void press(QAccessibleInterface* part) {
  part->actionInterface()->doAction(QAccessibleActionInterface::pressAction());
}

TEST_CASE("The timeline is found in the window, and its rows in the timeline", "[gui][person]") {
  Opened opened;
  QAccessibleInterface* window = QAccessible::queryAccessibleInterface(&opened.window);
  QAccessibleInterface* timeline = found(window, "Timeline");
  REQUIRE(timeline);
  CHECK(timeline->object() == &opened.window.timeline());
  CHECK(found(timeline, "rank 1: busy "));
}

TEST_CASE("A click on a bubble outlines its cause", "[gui][person]") {
  Opened opened;
  QAccessibleInterface* bubble = found(opened.timeline()->child(1), "rank 1 is idle for ");
  REQUIRE(bubble);
  press(bubble);
  const gui::Picked& picked = opened.window.workspace().picked();
  REQUIRE(std::holds_alternative<gui::PickedIdle>(picked));
  const auto& idle = std::get<gui::PickedIdle>(picked);
  const auto why = opened.window.workspace().why_idle(idle.rank, idle.time);
  REQUIRE(why);
  CHECK(why->sentence.starts_with("rank 1 "));
  CHECK(why->cause);
}

TEST_CASE("The reason for a rank's wait is read after a click", "[gui][person]") {
  Opened opened;
  QAccessibleInterface* bubble = found(opened.timeline()->child(0), "rank 0 is idle for ");
  REQUIRE(bubble);
  press(bubble);
  QApplication::processEvents();
  const auto& idle = std::get<gui::PickedIdle>(opened.window.workspace().picked());
  const auto why = opened.window.workspace().why_idle(idle.rank, idle.time);
  REQUIRE(why);
  // The panel capitalizes the sentence.
  CHECK(found(panel(opened.window, "why"), why->sentence.substr(1, 24)));
}

TEST_CASE("Moving a stage boundary gives a new answer", "[gui][person]") {
  Opened opened(opened_plan);
  opened.window.show_view("partition");
  QApplication::processEvents();
  QAccessibleInterface* border = found(panel(opened.window, "partition"), QAccessible::Slider);
  REQUIRE(border);
  QAccessibleValueInterface* value = border->valueInterface();
  REQUIRE(value);
  const gui::Workspace& workspace = opened.window.workspace();
  const std::vector<int> before = workspace.answer()->plan.partition.boundaries;
  value->setCurrentValue(value->currentValue().toInt() - 1);
  CHECK(workspace.answer()->plan.partition.boundaries[1] == before[1] - 1);
  opened.trigger("edit.undo");
  CHECK(workspace.answer()->plan.partition.boundaries == before);
}

TEST_CASE("The fastest plans are searched, and one is applied and undone", "[gui][person]") {
  Opened opened(opened_plan);
  gui::Workspace& workspace = opened.window.workspace();
  const search::Draft before = workspace.draft();
  const double was = workspace.answer()->figures.iteration_s;
  opened.trigger("plan.search");
  auto* list = opened.window.findChild<gui::FigureTableView*>("plans_list");
  REQUIRE(list);
  REQUIRE(QTest::qWaitFor([&] { return list->rowCount() > 0; }, patience_ms));
  CHECK(list->isVisible());
  REQUIRE(list->rowCount() == 20);
  // Sorted by memory, the smallest on top.
  list->sortItems(4, Qt::AscendingOrder);
  const auto number = [&](int row, int column) {
    return list->table()
        .rows[static_cast<std::size_t>(row)]
        .cells[static_cast<std::size_t>(column)]
        .number;
  };
  CHECK(number(0, 1) <= number(19, 1));  // as they were found: the fastest first
  list->on_chosen(0);
  CHECK(workspace.answer()->figures.iteration_s == Approx(number(0, 1)).epsilon(1e-12));
  CHECK(workspace.answer()->figures.iteration_s <= was);
  CHECK_FALSE(workspace.draft() == before);
  CHECK(workspace.shown() == gui::Workspace::Shown::Plan);
  opened.trigger("edit.undo");
  CHECK(workspace.draft() == before);
}

TEST_CASE("The mouse selects the same bubble", "[gui][person]") {
  Opened opened;
  QAccessibleInterface* bubble = found(opened.timeline()->child(1), "rank 1 is idle for ");
  REQUIRE(bubble);
  QWidget* viewport = opened.window.timeline().viewport();
  // In the lower part of the row: the upper part shows the prediction.
  const QRect on_screen = bubble->rect();
  const QPoint at(on_screen.center().x(), on_screen.top() + on_screen.height() * 6 / 10);
  QTest::mouseClick(viewport, Qt::LeftButton, {}, viewport->mapFromGlobal(at));
  const gui::Picked& picked = opened.window.workspace().picked();
  REQUIRE(std::holds_alternative<gui::PickedIdle>(picked));
  CHECK(std::get<gui::PickedIdle>(picked).rank == 1);
}

TEST_CASE("Keys zoom, move the selection and clear it", "[gui][person]") {
  Opened opened;
  gui::TimelineView& view = opened.window.timeline();
  const gui::TimeScale all = view.scale();
  QTest::keyClick(&view, Qt::Key_W);
  CHECK(view.scale().per_pixel < all.per_pixel);
  QTest::keyClick(&view, Qt::Key_D);
  QTest::keyClick(&view, Qt::Key_F);
  CHECK(view.scale() == all);
  QTest::keyClick(&view, Qt::Key_BracketRight);
  QTest::keyClick(&view, Qt::Key_BracketRight);
  REQUIRE(std::holds_alternative<gui::PickedEvent>(opened.window.workspace().picked()));
  CHECK(opened.timeline()->text(QAccessible::Value).contains(" on rank 0: "));
  QTest::keyClick(&view, Qt::Key_Escape);
  CHECK(std::holds_alternative<std::monostate>(opened.window.workspace().picked()));
}

TEST_CASE("A change is undone and redone by commands", "[gui][person]") {
  Opened opened;
  gui::Workspace& workspace = opened.window.workspace();
  CHECK(!opened.window.commands().find("edit.undo")->isEnabled());
  workspace.set("pipeline.microbatches=4");
  REQUIRE(workspace.answer());
  CHECK(workspace.changed());
  opened.trigger("edit.undo");
  CHECK(!workspace.changed());
  opened.trigger("edit.redo");
  CHECK(workspace.changed());
}

TEST_CASE("A plan that needs too much memory gets a change that makes it fit", "[gui][person]") {
  Opened opened(opened_plan);
  gui::Workspace& workspace = opened.window.workspace();
  workspace.set("pipeline.replicas=1");
  const auto peak = workspace.answer()->figures.peak;
  workspace.set("cluster.device.memory_bytes=" + std::to_string(peak.value - 10'000'000));
  REQUIRE(workspace.answer()->over);
  QAccessibleInterface* button = found(panel(opened.window, "figures"), "Find a fitting change");
  REQUIRE(button);
  const auto click = [&] {
    QTest::mouseClick(qobject_cast<QWidget*>(button->object()), Qt::LeftButton);
  };
  click();
  CHECK(button->text(QAccessible::Name).startsWith("Searching for"));
  REQUIRE(QTest::qWaitFor([&] { return button->text(QAccessible::Name).startsWith("Set "); },
                          patience_ms));
  click();
  CHECK_FALSE(workspace.answer()->over);
}

TEST_CASE("No figure and no button is shown partially in a window of any width", "[gui][person]") {
  Opened opened;
  auto* bar = opened.window.findChild<QWidget*>("figures");
  REQUIRE(bar);
  int figures_before = 0;
  for (const int width : {1000, 1100, 1280, 1366, 1920, 2560}) {
    opened.window.resize(width, 768);
    QApplication::processEvents();
    int figures = 0;
    for (const QWidget* part : bar->findChildren<QWidget*>()) {
      const bool is_whole = part->width() >= part->sizeHint().width();
      const QString name = part->objectName();
      if (!part->isVisible() || !name.startsWith("figures.") || name == "figures.alert")
        continue;
      CAPTURE(width, name.toStdString(), part->width(), part->sizeHint().width());
      CHECK(is_whole);
      CHECK(bar->rect().contains(QRect(part->mapTo(bar, QPoint()), part->size())));
      figures += name.at(name.size() - 1).isDigit() ? 1 : 0;
    }
    CHECK(figures >= std::max(1, figures_before));
    figures_before = figures;
  }
  CHECK(figures_before == 4);
}

TEST_CASE("Every view can be opened by name, light and dark", "[gui][person]") {
  Opened opened;
  for (const bool dark : {false, true}) {
    opened.window.set_dark(dark);
    for (const QString& name : MainWindow::view_names()) {
      CHECK(opened.window.show_view(name));
      CHECK(!opened.window.grab().isNull());
    }
  }
  CHECK(!opened.window.show_view("no such view"));
}

TEST_CASE("Every command has a unique name and shortcut", "[gui][person]") {
  Opened opened;
  std::set<QString> ids;
  std::map<QString, QString> shortcuts;
  for (const gui::Command& command : opened.window.commands().all()) {
    CHECK(ids.insert(command.id).second);
    CHECK(!command.action->text().isEmpty());
    for (const QKeySequence& keys : command.action->shortcuts()) {
      const auto [at, is_new] = shortcuts.emplace(keys.toString(), command.id);
      CAPTURE(command.id.toStdString(), at->second.toStdString(), keys.toString().toStdString());
      CHECK(is_new);
    }
  }
}

}  // namespace person_test
