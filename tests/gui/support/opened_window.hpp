#pragma once

// The window with a document open, as a user sees it; and panels without a window.

#include <QApplication>
#include <QTest>
#include <vector>

#include "pipewright/gui/panels/panel_catalog.hpp"
#include "pipewright/gui/window/main_window.hpp"
#include "support/catch.hpp"

namespace pipewright::test {

inline constexpr int patience_ms = 60'000;
inline constexpr const char* opened_run = PIPEWRIGHT_TEST_DATA_DIR "/gui/run";
inline constexpr const char* opened_plan =
    PIPEWRIGHT_SOURCE_DIR "/scenarios/shared-card/scenario.json";

struct OpenedWindow {
  gui::MainWindow window;

  explicit OpenedWindow(const std::filesystem::path& path = opened_run) {
    window.resize(1200, 800);
    window.show();
    window.open(path);
    QApplication::processEvents();
  }
  gui::Workspace& workspace() { return window.workspace(); }
  gui::TimelineView& timeline() { return window.timeline(); }

  /// Returns a panel after bringing it to the front.
  template <class Panel>
  Panel& show(const char* name) {
    REQUIRE(window.show_view(name));
    QApplication::processEvents();
    return static_cast<Panel&>(*window.panel(name));
  }
  /// Returns a widget of the window by name.
  template <class Widget>
  Widget& find(const char* name) {
    auto* widget = window.findChild<Widget*>(name);
    REQUIRE(widget);
    return *widget;
  }
  /// Executes a command.
  void trigger(const char* command) {
    QAction* action = window.commands().find(command);
    REQUIRE(action);
    REQUIRE(action->isEnabled());
    action->trigger();
    QApplication::processEvents();
  }
};

/// The host of a panel without a window; it records the panel's requests.
struct PanelBench {
  gui::Workspace workspace;
  gui::RunControl runs;
  std::vector<gui::Places> places;
  std::vector<int> rows;
  std::vector<std::string> commands;
  std::vector<gui::PanelHost::Section> sections;
  gui::PanelHost host{
      .workspace = workspace,
      .runs = runs,
      .show_places = [this](const gui::Places& shown) { places.push_back(shown); },
      .show_row = [this](int row) { rows.push_back(row); },
      .trigger = [this](const char* command) { commands.emplace_back(command); },
      .observe_section = [this](auto told) { sections.push_back(std::move(told)); }};

  explicit PanelBench(const std::filesystem::path& path = {}) {
    if (!path.empty())
      workspace.open(path);
  }
  /// Starts a script in place of a training, which writes `steps` steps into its folder, and waits
  /// for its end.
  void train(const std::filesystem::path& folder, int steps);
};

}  // namespace pipewright::test
