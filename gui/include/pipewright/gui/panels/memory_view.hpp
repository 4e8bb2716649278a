#pragma once

// What each rank holds over time, stacked by owner, with the device's memory as a line; predicted
// against measured.

#include <QWidget>

#include "pipewright/gui/document/workspace.hpp"
#include "pipewright/gui/look/theme.hpp"

namespace pipewright::gui {

class MemoryView : public QWidget {
 public:
  /// `workspace` must outlive it.
  explicit MemoryView(Workspace& workspace, QWidget* parent = nullptr);
  void set_theme(const Theme& theme);

 private:
  void refresh(Workspace::Change change);

  Workspace& workspace_;
  const Theme* theme_;
};

}  // namespace pipewright::gui
