// Checks panels that are not tables: the figures above the timeline, memory, problems, the
// partition.
#include <QApplication>
#include <QClipboard>
#include <QListWidget>

#include "gui/support/mouse.hpp"
#include "gui/support/opened_window.hpp"
#include "pipewright/gui/look/words.hpp"
#include "pipewright/gui/panels/figures_bar.hpp"
#include "pipewright/gui/panels/memory_view.hpp"
#include "pipewright/gui/panels/partition_strip.hpp"
#include "pipewright/gui/panels/problems_panel.hpp"
#include "support/temp_folder.hpp"

namespace other_panels_test {

using namespace pipewright;
using test::OpenedWindow;

TEST_CASE("The figures are those of the run or the plan, whichever is shown", "[gui][panels]") {
  OpenedWindow opened;
  opened.window.resize(1920, 1000);
  QApplication::processEvents();
  const auto figure = [&](const char* name) { return opened.find<QWidget>(name).accessibleName(); };
  const double measured = opened.workspace().front()->length();
  CHECK(figure("figures.0").startsWith("Iteration: " + gui::time_words(measured)));
  CHECK(figure("figures.0").contains("predicted"));
  CHECK(figure("figures.1").startsWith("Bubble: "));
  CHECK(figure("figures.2").startsWith("Peak memory: "));
  CHECK(figure("figures.3").contains("tokens/s"));
  auto& plan = opened.find<QToolButton>("figures.plan");
  test::click(plan, plan.rect().center());
  CHECK(opened.workspace().shown() == gui::Workspace::Shown::Plan);
  CHECK(plan.isChecked());
  const double planned = opened.workspace().answer()->figures.iteration_s;
  CHECK(figure("figures.0").startsWith("Iteration: " + gui::time_words(planned)));
}

TEST_CASE("Figures are shown completely or not at all when a window opens with a plan",
          "[gui][panels]") {
  gui::MainWindow window;
  window.open(test::opened_plan);
  window.workspace().set("cluster.device.memory_bytes=42900000000");
  for (const int width : {1000, 1200, 1400, 1600}) {
    CAPTURE(width);
    window.resize(width, 800);
    window.show();
    QApplication::processEvents();
    QApplication::processEvents();
    for (const QLabel* const label : window.panel("figures")->findChildren<QLabel*>())
      if (label->isVisible()) {
        CAPTURE(label->text().toStdString());
        CHECK(label->width() >= label->minimumSizeHint().width());
      }
  }
}

TEST_CASE("A figure shows its difference from the baseline until the plan is kept",
          "[gui][panels]") {
  OpenedWindow opened(test::opened_plan);
  opened.window.resize(1920, 1000);
  auto& keep = opened.find<QPushButton>("figures.keep");
  CHECK_FALSE(keep.isEnabled());
  opened.workspace().set("pipeline.microbatches=32");
  QApplication::processEvents();
  CHECK(opened.find<QWidget>("figures.0").accessibleName().contains("(+"));
  test::click(keep, keep.rect().center());
  CHECK_FALSE(opened.workspace().changed());
  CHECK_FALSE(opened.find<QWidget>("figures.0").accessibleName().contains("(+"));
}

TEST_CASE("A name that is shortened above the timeline is in its tooltip", "[gui][panels]") {
  test::PanelBench bench(test::opened_run);
  gui::FiguresBar bar(bench.workspace);
  bar.resize(420, 80);
  bar.show();
  QApplication::processEvents();
  int cut = 0;
  for (const QLabel* label : bar.findChildren<QLabel*>())
    if (label->isVisible() && label->text().endsWith(u'…')) {
      CHECK(label->toolTip().startsWith("1f1b  ·  2 ranks × 8 microbatches  ·  measured"));
      ++cut;
    }
  CHECK(cut == 1);
}

TEST_CASE("Memory shows the owners at an instant", "[gui][panels]") {
  OpenedWindow opened;
  auto& memory = opened.show<gui::MemoryView>("memory");
  const QString words = memory.holders_words(0, opened.workspace().front()->length() / 2);
  CHECK(words.startsWith("rank 0 at "));
  CHECK(words.contains("predicted total"));
  CHECK(words.contains("measured total"));
  CHECK(memory.holders_words(0, -1).isEmpty());
  CHECK(memory.holders_words(2, 0).isEmpty());  // there are two ranks
  const gui::TimelineView& view = opened.timeline();
  const QPointF at(view.model().layout.plot_left + view.model().layout.plot_width() / 2,
                   memory.viewport()->height() * 0.4);
  CHECK(test::tooltip(*memory.viewport(), at).startsWith("rank 0 at "));
  CHECK(test::tooltip(*memory.viewport(), {20, at.y()}).isEmpty());
}

TEST_CASE("Memory shows the section of time that the timeline shows", "[gui][panels]") {
  OpenedWindow opened;
  auto& memory = opened.show<gui::MemoryView>("memory");
  gui::TimelineView& view = opened.timeline();
  const QPoint at(500, memory.viewport()->height() * 4 / 10);
  const auto said = [&] { return test::tooltip(*memory.viewport(), at).section('\n', 0, 0); };
  const auto time = [&] { return view.scale().time(at.x() - view.model().layout.plot_left); };
  const double before = time();
  CHECK(said() == "rank 0 at " + gui::time_words(before));
  view.set_scale(gui::fitted(0, view.front()->length() / 4, view.model().layout.plot_width()));
  CHECK(time() < before / 2);
  CHECK(said() == "rank 0 at " + gui::time_words(time()));
}

TEST_CASE("Problems name the unreadable file, and can be copied", "[gui][panels]") {
  const test::TempFolder folder;
  OpenedWindow opened(folder.write("broken.json", "{"));
  auto& panel = static_cast<gui::ProblemsPanel&>(*opened.window.panel("problems"));
  CHECK(panel.isVisible());  // it came to the front
  auto& list = opened.find<QListWidget>("problems_list");
  REQUIRE(list.count() == 1);
  CHECK(list.item(0)->text().contains("broken.json"));
  CHECK(panel.findChild<QLabel*>()->text() == "1 problem");
  auto* copy = panel.findChild<QPushButton*>();
  QApplication::clipboard()->clear();
  test::click(*copy, copy->rect().center());
  CHECK(QApplication::clipboard()->text() == list.item(0)->text());
  opened.workspace().open(test::opened_run);
  CHECK(panel.findChild<QLabel*>()->text().startsWith("No problems"));
}

TEST_CASE("Partition shows stages and layers, and balances them by a click", "[gui][panels]") {
  OpenedWindow opened(test::opened_plan);
  auto& strip = opened.show<gui::PartitionStrip>("partition");
  REQUIRE(strip.strip());
  CHECK(strip.strip()->stages.size() == 4);
  CHECK(strip.strip()->boundaries == opened.workspace().answer()->plan.partition.boundaries);
  CHECK(strip.border(3)->isVisible());
  auto& balance = opened.find<QPushButton>("partition.balance");
  CHECK_FALSE(balance.isEnabled());
  const std::vector<int> before = strip.strip()->boundaries;
  opened.workspace().move_boundary(1, before[1] - 1);
  CHECK(strip.strip()->boundaries[1] == before[1] - 1);
  test::click(balance, balance.rect().center());
  CHECK(strip.strip()->boundaries == before);
  const QPointF layer = strip.border(1)->geometry().center() - QPointF(12, 0);
  CHECK(test::tooltip(strip, layer).contains("activation of a microbatch"));
}

TEST_CASE("A strip has the layers' times, and a stage takes as long as its layers",
          "[gui][panels]") {
  gui::Workspace workspace;
  CHECK_FALSE(gui::strip_of(workspace));
  workspace.open(test::opened_plan);
  const auto strip = gui::strip_of(workspace);
  REQUIRE(strip);
  int slowest = 0;
  for (const gui::StripStage& stage : strip->stages) {
    double sum = 0;
    for (int layer = stage.first; layer < stage.last; ++layer)
      sum += strip->layers[static_cast<std::size_t>(layer)].time_s;
    CHECK(stage.time_s == Approx(sum));
    slowest += stage.slowest ? 1 : 0;
  }
  CHECK(slowest == 1);
}

TEST_CASE("Layer widths are proportional to time, and none vanishes", "[gui][panels]") {
  std::vector<gui::StripLayer> layers(4);
  layers[0].time_s = 1;
  layers[1].time_s = 3;
  layers[2].time_s = 0;
  layers[3].time_s = 4;
  const std::vector<double> places = gui::layer_places(layers, 100, 4);
  REQUIRE(places.size() == 5);
  CHECK(places.back() == Approx(100));
  CHECK(places[3] - places[2] == Approx(4));
  CHECK(places[1] == Approx(12));  // an eighth of what is left
  CHECK(places[2] - places[1] == Approx(36));
  CHECK(gui::layer_at(places, 20) == 1);
  CHECK(gui::layer_at(places, -1) == -1);
  CHECK(gui::layer_at(places, 100) == -1);
  CHECK(gui::nearest_layer(places, 46, 1, 3) == 2);
  CHECK(gui::nearest_layer(places, 0, 1, 3) == 1);  // limited to the allowed range
}

}  // namespace other_panels_test
