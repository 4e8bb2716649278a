#pragma once

// Saves the draft in formats of other programs.

#include <QString>
#include <string>

#include "pipewright/gui/document/workspace.hpp"
#include "pipewright/gui/window/commands.hpp"

namespace pipewright::gui {

enum class SavedAs { Scenario, TorchCsv, MegatronLayout };

/// Returns the content of the file. Throws InputError if the draft cannot be written in this
/// format.
std::string saved_text(const Workspace& workspace, SavedAs as);
/// "shared-card.scenario.json"
QString suggested_name(const Workspace& workspace, SavedAs as);

/// Both must outlive `window`, which asks for the file and reports errors.
void add_save_commands(Commands& commands, Workspace& workspace, QWidget* window);

}  // namespace pipewright::gui
