#include "pipewright/gui/panels/panel_catalog.hpp"

#include "catalog.hpp"

namespace pipewright::gui {

const std::vector<PanelDescriptor>& panels() {
#define CALL(name) panel::name(),
  static const std::vector<PanelDescriptor> all{PIPEWRIGHT_PANELS(CALL)};
#undef CALL
  return all;
}

}  // namespace pipewright::gui
