#pragma once

// Where the error of a prediction goes: compute, transfer, waiting, launch and memory per rank, and
// the causes in the order of their size.

#include <QWidget>

#include "pipewright/gui/document/workspace.hpp"
#include "pipewright/gui/look/theme.hpp"

namespace pipewright::gui {

class ResidualPanel : public QWidget {
 public:
  /// `workspace` must outlive it.
  explicit ResidualPanel(Workspace& workspace, QWidget* parent = nullptr);
  void set_theme(const Theme& theme);

 private:
  void refresh(Workspace::Change change);

  Workspace& workspace_;
  const Theme* theme_;
};

}  // namespace pipewright::gui
