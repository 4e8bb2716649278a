#pragma once

// The model as a strip of layers with their cost and memory, and the borders of stages on it, which
// can be dragged.

#include <QWidget>

#include "pipewright/gui/document/workspace.hpp"
#include "pipewright/gui/look/theme.hpp"

namespace pipewright::gui {

class PartitionStrip : public QWidget {
 public:
  /// `workspace` must outlive it.
  explicit PartitionStrip(Workspace& workspace, QWidget* parent = nullptr);
  void set_theme(const Theme& theme);

 private:
  void refresh(Workspace::Change change);

  Workspace& workspace_;
  const Theme* theme_;
};

}  // namespace pipewright::gui
