#include "pipewright/gui/panels/why_panel.hpp"

namespace pipewright::gui {

WhyPanel::WhyPanel(Workspace& workspace, QWidget* parent)
    : QWidget(parent), workspace_(workspace), theme_(&light_theme()) {
  workspace_.observe([this](Workspace::Change change) { refresh(change); });
}

void WhyPanel::set_theme(const Theme& theme) {
  theme_ = &theme;
  update();
}

void WhyPanel::refresh(Workspace::Change) { update(); }

}  // namespace pipewright::gui
