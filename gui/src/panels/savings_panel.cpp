#include "pipewright/gui/panels/savings_panel.hpp"

namespace pipewright::gui {

SavingsPanel::SavingsPanel(Workspace& workspace, QWidget* parent)
    : QWidget(parent), workspace_(workspace), theme_(&light_theme()) {
  workspace_.observe([this](Workspace::Change change) { refresh(change); });
}

void SavingsPanel::set_theme(const Theme& theme) {
  theme_ = &theme;
  update();
}

void SavingsPanel::refresh(Workspace::Change) { update(); }

}  // namespace pipewright::gui
