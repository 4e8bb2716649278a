#pragma once

// What would happen if: fields and sliders for the plan; each change is answered at once, or
// refused in words.

#include <QWidget>

#include "pipewright/gui/document/workspace.hpp"
#include "pipewright/gui/look/theme.hpp"

namespace pipewright::gui {

class WhatIfPanel : public QWidget {
 public:
  /// `workspace` must outlive it.
  explicit WhatIfPanel(Workspace& workspace, QWidget* parent = nullptr);
  void set_theme(const Theme& theme);

 private:
  void refresh(Workspace::Change change);

  Workspace& workspace_;
  const Theme* theme_;
};

}  // namespace pipewright::gui
