#pragma once

// The list of all commands, from which menus, shortcuts, the command palette, the sheet of
// shortcuts and tests are built.

#include <QAction>
#include <QKeySequence>
#include <QString>
#include <functional>
#include <vector>

namespace pipewright::gui {

struct Command {
  QString id;    // "file.open"
  QString menu;  // "File"; empty: only in the palette
  QAction* action = nullptr;
};

class Commands {
 public:
  explicit Commands(QWidget* owner) : owner_(owner) {}

  /// `enabled` is called whenever the state changes; empty: always enabled.
  QAction* add(const QString& id, const QString& menu, const QString& text,
               const QKeySequence& shortcut, std::function<void()> run,
               std::function<bool()> enabled = {});
  const std::vector<Command>& all() const { return commands_; }
  /// Returns null for an unknown id.
  QAction* find(const QString& id) const;
  /// Updates whether each command is enabled.
  void refresh();

 private:
  QWidget* owner_;
  std::vector<Command> commands_;
  std::vector<std::function<bool()>> enabled_;
};

}  // namespace pipewright::gui
