#pragma once

// All keys on one sheet.

#include <QWidget>
#include <utility>
#include <vector>

#include "pipewright/gui/window/commands.hpp"

namespace pipewright::gui {

struct ShortcutGroup {
  QString title;
  std::vector<std::pair<QString, QString>> keys;  // "Ctrl+Z", "Undo"
};

/// Those of the timeline itself, and those of the commands by menu.
std::vector<ShortcutGroup> shortcut_groups(const Commands& commands);

/// A dialog; the caller shows it.
QWidget* make_shortcuts_sheet(const Commands& commands, QWidget* window);

}  // namespace pipewright::gui
