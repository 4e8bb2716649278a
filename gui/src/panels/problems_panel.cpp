#include "pipewright/gui/panels/problems_panel.hpp"

namespace pipewright::gui {

ProblemsPanel::ProblemsPanel(Workspace& workspace, QWidget* parent)
    : QWidget(parent), workspace_(workspace), theme_(&light_theme()) {
  workspace_.observe([this](Workspace::Change change) { refresh(change); });
}

void ProblemsPanel::set_theme(const Theme& theme) {
  theme_ = &theme;
  update();
}

void ProblemsPanel::refresh(Workspace::Change) { update(); }

}  // namespace pipewright::gui
