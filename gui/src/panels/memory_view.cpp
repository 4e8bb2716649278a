#include "pipewright/gui/panels/memory_view.hpp"

namespace pipewright::gui {

MemoryView::MemoryView(Workspace& workspace, QWidget* parent)
    : QWidget(parent), workspace_(workspace), theme_(&light_theme()) {
  workspace_.observe([this](Workspace::Change change) { refresh(change); });
}

void MemoryView::set_theme(const Theme& theme) {
  theme_ = &theme;
  update();
}

void MemoryView::refresh(Workspace::Change) { update(); }

}  // namespace pipewright::gui
