#include "pipewright/gui/panels/run_panel.hpp"

#include "gui/support/mouse.hpp"
#include "gui/support/opened_window.hpp"
#include "support/temp_folder.hpp"

namespace run_panel_test {

using namespace pipewright;

struct Shown {
  test::PanelBench bench;
  gui::RunPanel panel{bench.host};

  explicit Shown(const char* path) : bench(path) {
    panel.set_theme(gui::light_theme());
    panel.resize(1200, 240);
    panel.show();
    QApplication::processEvents();
  }
  template <class Widget>
  Widget& find(const char* name) {
    auto* widget = panel.findChild<Widget*>(name);
    REQUIRE(widget);
    return *widget;
  }
  QString figure(const char* name) {
    for (const auto* label : panel.findChildren<QLabel*>())
      if (label->accessibleName() == name)
        return label->text();
    return {};
  }
};

TEST_CASE("Before a training, the panel says what can be run", "[gui][panels]") {
  Shown shown(test::opened_plan);
  CHECK(shown.find<QLabel>("run_heading").text() == "Nothing runs");
  CHECK_FALSE(shown.find<QPushButton>("run.stop").isVisible());
  for (const char* name : {"run.start", "run.train"}) {
    auto& button = shown.find<QPushButton>(name);
    test::click(button, button.rect().center());
    CHECK(shown.bench.commands.back() == name);
  }
  Shown nothing("");
  CHECK_FALSE(nothing.find<QPushButton>("run.start").isEnabled());
}

TEST_CASE("A training is followed with steps, loss, speed, curves and output", "[gui][panels]") {
  const test::TempFolder folder;
  Shown shown(test::opened_plan);
  shown.bench.train(folder.path(), 3);
  QApplication::processEvents();
  CHECK(shown.find<QLabel>("run_heading").text() == "Done");
  CHECK(shown.figure("step") == "3 / 3");
  CHECK(shown.figure("loss") == "2.000");
  CHECK(shown.figure("per second") == "2,048 tokens");
  CHECK(shown.figure("left") == "0 s");
  int curves = 0;
  for (QWidget* child : shown.panel.findChildren<QWidget*>())
    if (const auto* chart = dynamic_cast<gui::SmallChart*>(child)) {
      CHECK(chart->isVisible());
      CHECK(chart->points() == 3);
      ++curves;
    }
  CHECK(curves == 2);
  CHECK(shown.panel.findChild<QPlainTextEdit*>()->toPlainText().contains("the last words"));
  CHECK(shown.find<QPushButton>("run.open").isVisible());
}

TEST_CASE("A program that cannot be started is reported", "[gui][panels]") {
  const test::TempFolder folder;
  Shown shown(test::opened_plan);
  shown.bench.runs.set_program("/no/such/program");
  shown.bench.runs.start({gui::RunRequest::What::Run, folder.path() / "s", folder.path() / "f"});
  REQUIRE(
      QTest::qWaitFor([&] { return shown.bench.runs.phase() == gui::RunControl::Phase::Failed; },
                      test::patience_ms));
  CHECK(shown.find<QLabel>("run_heading").text() == "It failed");
}

TEST_CASE("The user chooses whether the last step is followed", "[gui][panels]") {
  Shown shown(test::opened_plan);
  CHECK(shown.bench.runs.is_followed());
  shown.panel.findChild<QCheckBox*>()->click();
  CHECK_FALSE(shown.bench.runs.is_followed());
}

}  // namespace run_panel_test
