#pragma once

// What a millisecond less in a stage, layer or link would save, sorted; and the slack of actions.

#include <QWidget>

#include "pipewright/gui/document/workspace.hpp"
#include "pipewright/gui/look/theme.hpp"

namespace pipewright::gui {

class SavingsPanel : public QWidget {
 public:
  /// `workspace` must outlive it.
  explicit SavingsPanel(Workspace& workspace, QWidget* parent = nullptr);
  void set_theme(const Theme& theme);

 private:
  void refresh(Workspace::Change change);

  Workspace& workspace_;
  const Theme* theme_;
};

}  // namespace pipewright::gui
