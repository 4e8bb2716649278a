#pragma once

// The draft as files that others read.

#include <QString>
#include <string>

#include "pipewright/gui/document/workspace.hpp"
#include "pipewright/gui/window/commands.hpp"

namespace pipewright::gui {

enum class SavedAs { Scenario, TorchCsv, MegatronLayout };

/// What the file will hold. Throws InputError where the draft cannot be written so.
std::string saved_text(const Workspace& workspace, SavedAs as);
/// "shared-card.scenario.json"
QString suggested_name(const Workspace& workspace, SavedAs as);

/// Both must outlive `window`, which asks where to and says what went wrong.
void add_save_commands(Commands& commands, Workspace& workspace, QWidget* window);

}  // namespace pipewright::gui
