#pragma once

// A sheet with all keyboard shortcuts.

#include <QWidget>
#include <utility>
#include <vector>

#include "pipewright/gui/window/commands.hpp"

namespace pipewright::gui {

struct ShortcutGroup {
  QString title;
  std::vector<std::pair<QString, QString>> keys;  // "Ctrl+Z", "Undo"
};

/// Returns the shortcuts of the timeline itself, and those of the commands by menu.
std::vector<ShortcutGroup> shortcut_groups(const Commands& commands);

/// Returns a dialog, which the caller shows.
QWidget* make_shortcuts_sheet(const Commands& commands, QWidget* window);

}  // namespace pipewright::gui
