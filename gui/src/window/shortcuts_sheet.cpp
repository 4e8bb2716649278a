#include "pipewright/gui/window/shortcuts_sheet.hpp"

#include <QDialog>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>
#include <algorithm>

#include "pipewright/gui/look/theme.hpp"

namespace pipewright::gui {
namespace {

QLayout* column_of(const std::vector<ShortcutGroup>& groups, std::size_t first, std::size_t last) {
  auto* grid = new QGridLayout;
  grid->setHorizontalSpacing(2 * gap);
  grid->setVerticalSpacing(gap / 2);
  int row = 0;
  for (std::size_t group = first; group < last; ++group) {
    auto* title = new QLabel(groups[group].title);
    title->setFont(font_of(heading_size, true));
    title->setContentsMargins(0, row > 0 ? 2 * gap : 0, 0, gap / 2);
    grid->addWidget(title, row++, 0, 1, 2);
    for (const auto& [keys, what] : groups[group].keys) {
      auto* key = new QLabel(keys);
      key->setFont(font_of(text_size, true));
      key->setAlignment(Qt::AlignRight);
      grid->addWidget(key, row, 0);
      grid->addWidget(new QLabel(what), row++, 1);
    }
  }
  grid->setRowStretch(row, 1);
  grid->setColumnStretch(1, 1);
  return grid;
}

}  // namespace

std::vector<ShortcutGroup> shortcut_groups(const Commands& commands) {
  std::vector<ShortcutGroup> groups{{"Timeline",
                                     {{"W  S", "zoom in and out"},
                                      {"A  D  ←  →", "pan"},
                                      {"Wheel", "zoom; with Shift pan, with Ctrl scroll"},
                                      {"F", "fit the selection, then all"},
                                      {"[  ]", "the action before, the next"},
                                      {"Drag", "select an area; edges snap"},
                                      {"Middle button", "pan"},
                                      {"Esc", "select nothing"}}}};
  for (const Command& command : commands.all()) {
    const QString keys = command.action->shortcut().toString(QKeySequence::NativeText);
    if (keys.isEmpty() || command.id == "view.fit")
      continue;
    const QString title = command.menu.isEmpty() ? "More" : command.menu;
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const ShortcutGroup& of) { return of.title == title; });
    if (group == groups.end())
      group = groups.insert(groups.end(), {title, {}});
    group->keys.emplace_back(keys, command.action->text().remove('&'));
  }
  return groups;
}

QWidget* make_shortcuts_sheet(const Commands& commands, QWidget* window) {
  auto* sheet = new QDialog(window);
  sheet->setObjectName("shortcuts");
  sheet->setAttribute(Qt::WA_DeleteOnClose);
  sheet->setAccessibleName("Keys");
  sheet->setWindowFlags(Qt::Widget);  // within the window, over its content
  auto* layout = new QHBoxLayout(sheet);
  layout->setContentsMargins(3 * gap, 3 * gap, 3 * gap, 3 * gap);
  layout->setSpacing(5 * gap);
  const std::vector<ShortcutGroup> groups = shortcut_groups(commands);
  // Two columns of about the same length.
  std::size_t lines = 0, half = 0, split = 0;
  for (const ShortcutGroup& group : groups)
    lines += group.keys.size() + 2;
  for (; split < groups.size() && 2 * half < lines; ++split)
    half += groups[split].keys.size() + 2;
  layout->addLayout(column_of(groups, 0, split));
  if (split < groups.size())
    layout->addLayout(column_of(groups, split, groups.size()));
  return sheet;
}

}  // namespace pipewright::gui
