#include "pipewright/gui/panels/figures_bar.hpp"

namespace pipewright::gui {

FiguresBar::FiguresBar(Workspace& workspace, QWidget* parent)
    : QWidget(parent), workspace_(workspace), theme_(&light_theme()) {
  workspace_.observe([this](Workspace::Change change) { refresh(change); });
}

void FiguresBar::set_theme(const Theme& theme) {
  theme_ = &theme;
  update();
}

void FiguresBar::refresh(Workspace::Change) { update(); }

}  // namespace pipewright::gui
