#include "pipewright/gui/panels/what_if_panel.hpp"

namespace pipewright::gui {

WhatIfPanel::WhatIfPanel(Workspace& workspace, QWidget* parent)
    : QWidget(parent), workspace_(workspace), theme_(&light_theme()) {
  workspace_.observe([this](Workspace::Change change) { refresh(change); });
}

void WhatIfPanel::set_theme(const Theme& theme) {
  theme_ = &theme;
  update();
}

void WhatIfPanel::refresh(Workspace::Change) { update(); }

}  // namespace pipewright::gui
