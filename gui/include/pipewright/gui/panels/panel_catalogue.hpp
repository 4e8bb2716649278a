#pragma once

// The window's panels as a list. A panel declares itself at the end of its source: what it is
// called, where it stands, and what makes it. It knows its host and not the window, which goes over
// the list.

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

/// What a panel is given: what it shows, and what it may ask for. It outlives the panels.
struct PanelHost {
  Workspace& workspace;
  RunControl& runs;
  /// Shows these events in the timeline.
  std::function<void(const Places&)> show_places;
  /// Scrolls to a row of the timeline and marks it.
  std::function<void(int row)> show_row;
  /// Does what a command does, such as "run.start".
  std::function<void(const char* command)> trigger;
  /// Calls back with the section of time that the timeline shows, whenever it changes: it begins
  /// `left` pixels from the timeline's edge and is `width` pixels wide.
  using Section = std::function<void(const TimeScale& scale, double left, double width)>;
  std::function<void(Section)> observe_section;
};

/// A command that a panel has: the panel is brought to the front, and then it runs.
struct PanelCommand {
  QString id;    // "plan.search"
  QString menu;  // "Edit"
  QString text;
  QString shortcut;
  std::function<void()> run;
  std::function<bool()> enabled;
};

/// A panel that was made. Without `set_theme` it is none: what it paints by itself must change with
/// the theme.
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
  Above,    // above the timeline, always seen
  Details,  // a tab below the timeline
  Side,     // to the right
};

struct PanelDescriptor {
  const char* name;      // "why": of its view, its command and its widget
  const char* title;     // "Why"
  const char* help;      // a sentence
  const char* shortcut;  // brings it to the front; empty: it is always there
  PanelDock dock;
  MadePanel (*make)(PanelHost& host);
};

/// All panels, in the order in which they are made and their tabs stand.
const std::vector<PanelDescriptor>& panels();

}  // namespace pipewright::gui
