#include "pipewright/gui/panels/residual_panel.hpp"

namespace pipewright::gui {

ResidualPanel::ResidualPanel(Workspace& workspace, QWidget* parent)
    : QWidget(parent), workspace_(workspace), theme_(&light_theme()) {
  workspace_.observe([this](Workspace::Change change) { refresh(change); });
}

void ResidualPanel::set_theme(const Theme& theme) {
  theme_ = &theme;
  update();
}

void ResidualPanel::refresh(Workspace::Change) { update(); }

}  // namespace pipewright::gui
