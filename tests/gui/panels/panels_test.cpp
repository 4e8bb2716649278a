// Checks properties of all declared panels.
#include <QImage>
#include <algorithm>
#include <cstdlib>
#include <set>

#include "gui/support/opened_window.hpp"
#include "support/temp_folder.hpp"

namespace panels_test {

using namespace pipewright;
using test::PanelBench;

/// Returns the number of pixels whose color differs from that of the corner.
int painted_pixels(const QImage& picture) {
  int painted = 0;
  for (int y = 0; y < picture.height(); ++y)
    for (int x = 0; x < picture.width(); ++x)
      painted += picture.pixel(x, y) != picture.pixel(0, 0) ? 1 : 0;
  return painted;
}

int different_pixels(const QImage& a, const QImage& b) {
  REQUIRE(a.size() == b.size());
  int different = 0;
  for (int y = 0; y < a.height(); ++y)
    for (int x = 0; x < a.width(); ++x)
      different += a.pixel(x, y) != b.pixel(x, y) ? 1 : 0;
  return different;
}

/// A panel with content: a run with its prediction, a selected bubble, a finished training, and for
/// the problems panel a broken file.
struct ShownPanel {
  test::TempFolder folder;
  PanelBench bench;
  gui::MadePanel made;

  explicit ShownPanel(const gui::PanelDescriptor& declared) : made(declared.make(bench.host)) {
    bench.workspace.open(std::string(declared.name) == "problems"
                             ? folder.write("broken.json", "{")
                             : std::filesystem::path(test::opened_run));
    if (bench.workspace.front())
      bench.workspace.pick(gui::picked_in(*bench.workspace.front(), {0, 0, 0.08, 0.08}));
    bench.train(folder.path(), 3);
    made.widget->resize(1000, 260);
    made.widget->show();
    QApplication::processEvents();
  }
  ~ShownPanel() { delete made.widget; }
  ShownPanel(const ShownPanel&) = delete;
  ShownPanel& operator=(const ShownPanel&) = delete;

  QImage picture() const {
    QApplication::processEvents();
    return made.widget->grab().toImage().convertToFormat(QImage::Format_RGB32);
  }
};

TEST_CASE("Every panel has a unique name, title and shortcut, and a help text", "[gui][panels]") {
  std::set<std::string> names, titles, shortcuts;
  for (const gui::PanelDescriptor& declared : gui::panels()) {
    CAPTURE(declared.name);
    CHECK(names.insert(declared.name).second);
    CHECK(titles.insert(declared.title).second);
    CHECK(std::string(declared.help).ends_with("."));
    const bool can_be_hidden = declared.dock != gui::PanelDock::Above;
    CHECK(can_be_hidden != std::string(declared.shortcut).empty());
    if (can_be_hidden)
      CHECK(shortcuts.insert(declared.shortcut).second);
  }
  CHECK(names.size() >= 10);
}

TEST_CASE("Every panel is in the window, and its shortcut brings it to the front",
          "[gui][panels]") {
  test::OpenedWindow opened;
  int asked = 0;
  for (const gui::PanelDescriptor& declared : gui::panels()) {
    CAPTURE(declared.name);
    QWidget* widget = opened.window.panel(declared.name);
    REQUIRE(widget);
    CHECK(widget->objectName() == declared.name);
    if (declared.dock == gui::PanelDock::Above) {
      CHECK(widget->isVisible());
      continue;
    }
    QAction* command = opened.window.commands().find(QString("view.") + declared.name);
    REQUIRE(command);
    CHECK(command->shortcut() == QKeySequence(declared.shortcut));
    command->trigger();
    QApplication::processEvents();
    CHECK(widget->isVisible());
    ++asked;
  }
  CHECK(asked >= 9);
}

TEST_CASE("Every panel shows something, and something else in the other theme", "[gui][panels]") {
  int shown = 0;
  for (const gui::PanelDescriptor& declared : gui::panels()) {
    CAPTURE(declared.name);
    const ShownPanel panel(declared);
    // The palette stays unchanged, so all differences are painted by the panel itself.
    panel.made.set_theme(gui::light_theme());
    const QImage light = panel.picture();
    panel.made.set_theme(gui::dark_theme());
    const QImage dark = panel.picture();
    CHECK(painted_pixels(light) > 400);
    CHECK(different_pixels(light, dark) > 20);
    panel.made.set_theme(gui::light_theme());
    CHECK(different_pixels(panel.picture(), light) == 0);
    ++shown;
  }
  CHECK(shown == static_cast<int>(gui::panels().size()));
}

TEST_CASE("Every panel says what to do if nothing is open", "[gui][panels]") {
  for (const gui::PanelDescriptor& declared : gui::panels()) {
    PanelBench bench;
    const gui::MadePanel made = declared.make(bench.host);
    const std::unique_ptr<QWidget> widget(made.widget);
    CAPTURE(declared.name);
    widget->resize(1000, 260);
    widget->show();
    QApplication::processEvents();
    const QImage picture = widget->grab().toImage().convertToFormat(QImage::Format_RGB32);
    CHECK(painted_pixels(picture) > 50);
  }
}

}  // namespace panels_test
