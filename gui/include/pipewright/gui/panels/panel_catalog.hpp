#pragma once

// The list of the window's panels. Each panel declares itself at the end of its source: its name,
// its position, and the function that creates it. A panel knows its host but not the window, which
// iterates over the list.

#include <QString>
#include <QWidget>
#include <functional>
#include <vector>

#include "pipewright/gui/document/places.hpp"
#include "pipewright/gui/document/run_control.hpp"
#include "pipewright/gui/document/workspace.hpp"
#include "pipewright/gui/look/theme.hpp"
#include "pipewright/gui/timeline/time_scale.hpp"

namespace pipewright::gui {

/// The data and services that a panel gets. It outlives the panels.
struct PanelHost {
  Workspace& workspace;
  RunControl& runs;
  /// Shows these events in the timeline.
  std::function<void(const Places&)> show_places;
  /// Scrolls to a row of the timeline and marks it.
  std::function<void(int row)> show_row;
  /// Executes a command, such as "run.start".
  std::function<void(const char* command)> trigger;
  /// Receives the section of time that the timeline shows, whenever it changes. The section begins
  /// `left` pixels from the timeline's edge and is `width` pixels wide.
  using Section = std::function<void(const TimeScale& scale, double left, double width)>;
  std::function<void(Section)> observe_section;
};

/// A command of a panel. The panel is brought to the front before the command runs.
struct PanelCommand {
  QString id;    // "plan.search"
  QString menu;  // "Edit"
  QString text;
  QString shortcut;
  std::function<void()> run;
  std::function<bool()> enabled;
};

/// A created panel. It must have `set_theme`, because what it paints itself must change with the
/// theme.
struct MadePanel {
  template <class Widget>
  MadePanel(Widget* panel, std::vector<PanelCommand> has = {})  // NOLINT(*-explicit-*)
      : widget(panel),
        set_theme([panel](const Theme& theme) { panel->set_theme(theme); }),
        commands(std::move(has)) {}

  QWidget* widget;
  std::function<void(const Theme&)> set_theme;
  std::vector<PanelCommand> commands;
};

enum class PanelDock {
  Above,    // above the timeline, always visible
  Details,  // a tab below the timeline
  Side,     // to the right
};

struct PanelDescriptor {
  const char* name;      // "why": name of its view, command and widget
  const char* title;     // "Why"
  const char* help;      // one sentence
  const char* shortcut;  // brings it to the front; empty: it is always visible
  PanelDock dock;
  MadePanel (*make)(PanelHost& host);
};

/// Returns all panels, in the order in which they are created and their tabs appear.
const std::vector<PanelDescriptor>& panels();

}  // namespace pipewright::gui
