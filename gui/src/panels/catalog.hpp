#pragma once

// One line per panel, with the name of the function at the end of its file.

#include "pipewright/gui/panels/panel_catalog.hpp"

#define PIPEWRIGHT_PANELS(PANEL) \
  PANEL(figures)                 \
  PANEL(why)                     \
  PANEL(partition)               \
  PANEL(memory)                  \
  PANEL(savings)                 \
  PANEL(plans)                   \
  PANEL(residuals)               \
  PANEL(stragglers)              \
  PANEL(problems)                \
  PANEL(training)                \
  PANEL(what_if)

namespace pipewright::gui::panel {

#define PIPEWRIGHT_DECLARE(name) PanelDescriptor name();
PIPEWRIGHT_PANELS(PIPEWRIGHT_DECLARE)
#undef PIPEWRIGHT_DECLARE

}  // namespace pipewright::gui::panel
