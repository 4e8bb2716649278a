#include "pipewright/gui/window/commands.hpp"

#include <QWidget>
#include <algorithm>

namespace pipewright::gui {

QAction* Commands::add(const QString& id, const QString& menu, const QString& text,
                       const QKeySequence& shortcut, std::function<void()> run,
                       std::function<bool()> enabled) {
  auto* action = new QAction(text, owner_);
  action->setObjectName(id);
  action->setShortcut(shortcut);
  owner_->addAction(action);
  QObject::connect(action, &QAction::triggered, owner_, std::move(run));
  commands_.push_back({id, menu, action});
  enabled_.push_back(std::move(enabled));
  return action;
}

QAction* Commands::find(const QString& id) const {
  const auto found = std::find_if(commands_.begin(), commands_.end(),
                                  [&](const Command& command) { return command.id == id; });
  return found == commands_.end() ? nullptr : found->action;
}

void Commands::refresh() {
  for (std::size_t i = 0; i < commands_.size(); ++i)
    commands_[i].action->setEnabled(!enabled_[i] || enabled_[i]());
}

}  // namespace pipewright::gui
