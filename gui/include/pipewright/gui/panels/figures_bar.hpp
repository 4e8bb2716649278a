#pragma once

// The headline: iteration, bubble, peak memory and throughput of what is shown, with the difference
// to what it is held against.

#include <QWidget>

#include "pipewright/gui/document/workspace.hpp"
#include "pipewright/gui/look/theme.hpp"

namespace pipewright::gui {

class FiguresBar : public QWidget {
 public:
  /// `workspace` must outlive it.
  explicit FiguresBar(Workspace& workspace, QWidget* parent = nullptr);
  void set_theme(const Theme& theme);

 private:
  void refresh(Workspace::Change change);

  Workspace& workspace_;
  const Theme* theme_;
};

}  // namespace pipewright::gui
