#include "pipewright/gui/panels/panel_catalogue.hpp"

#include "catalogue.hpp"

namespace pipewright::gui {

const std::vector<PanelDescriptor>& panels() {
#define CALL(name) panel::name(),
  static const std::vector<PanelDescriptor> all{PIPEWRIGHT_PANELS(CALL)};
#undef CALL
  return all;
}

}  // namespace pipewright::gui
