#pragma once

// Everything that a person can do, in one list: menus, shortcuts, the command palette, the sheet of
// shortcuts and tests all take it from here.

#include <QAction>
#include <QKeySequence>
#include <QString>
#include <functional>
#include <vector>

namespace pipewright::gui {

struct Command {
  QString id;    // "file.open"
  QString menu;  // "File"; empty: in the palette alone
  QAction* action = nullptr;
};

class Commands {
 public:
  explicit Commands(QWidget* owner) : owner_(owner) {}

  /// `enabled` is asked whenever something changes; empty: always.
  QAction* add(const QString& id, const QString& menu, const QString& text,
               const QKeySequence& shortcut, std::function<void()> run,
               std::function<bool()> enabled = {});
  const std::vector<Command>& all() const { return commands_; }
  /// Null where there is none.
  QAction* find(const QString& id) const;
  /// Asks each command whether it can be done now.
  void refresh();

 private:
  QWidget* owner_;
  std::vector<Command> commands_;
  std::vector<std::function<bool()>> enabled_;
};

}  // namespace pipewright::gui
