#include "pipewright/gui/panels/partition_strip.hpp"

namespace pipewright::gui {

PartitionStrip::PartitionStrip(Workspace& workspace, QWidget* parent)
    : QWidget(parent), workspace_(workspace), theme_(&light_theme()) {
  workspace_.observe([this](Workspace::Change change) { refresh(change); });
}

void PartitionStrip::set_theme(const Theme& theme) {
  theme_ = &theme;
  update();
}

void PartitionStrip::refresh(Workspace::Change) { update(); }

}  // namespace pipewright::gui
