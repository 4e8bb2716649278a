#pragma once

// What could not be read, with file, place and reason; and what was taken for granted.

#include <QWidget>

#include "pipewright/gui/document/workspace.hpp"
#include "pipewright/gui/look/theme.hpp"

namespace pipewright::gui {

class ProblemsPanel : public QWidget {
 public:
  /// `workspace` must outlive it.
  explicit ProblemsPanel(Workspace& workspace, QWidget* parent = nullptr);
  void set_theme(const Theme& theme);

 private:
  void refresh(Workspace::Change change);

  Workspace& workspace_;
  const Theme* theme_;
};

}  // namespace pipewright::gui
