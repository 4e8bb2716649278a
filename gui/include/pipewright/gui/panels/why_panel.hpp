#pragma once

// What was pointed at, in words: an action, a bubble with what held it back, or an area with a
// table per rank.

#include <QWidget>

#include "pipewright/gui/document/workspace.hpp"
#include "pipewright/gui/look/theme.hpp"

namespace pipewright::gui {

class WhyPanel : public QWidget {
 public:
  /// `workspace` must outlive it.
  explicit WhyPanel(Workspace& workspace, QWidget* parent = nullptr);
  void set_theme(const Theme& theme);

 private:
  void refresh(Workspace::Change change);

  Workspace& workspace_;
  const Theme* theme_;
};

}  // namespace pipewright::gui
