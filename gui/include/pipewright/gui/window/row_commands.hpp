#pragma once

// What can be done to the row of what was pointed at: pin, collapse, move.

#include "pipewright/gui/document/workspace.hpp"
#include "pipewright/gui/timeline/timeline_view.hpp"
#include "pipewright/gui/window/commands.hpp"

namespace pipewright::gui {

/// The rank of what is picked, or the top row's; nothing where there are no rows.
std::optional<int> current_rank(const TimelineView& timeline);

/// The rows with one moved up or down among those that are seen.
RowState moved_row(RowState state, const RowLayout& seen, int ranks, int rank, int by);

/// All must outlive the commands.
void add_row_commands(Commands& commands, const Workspace& workspace, TimelineView& timeline);
/// How the workers of a whole job are arranged. Both must outlive the commands.
void add_job_commands(Commands& commands, Workspace& workspace);

/// Scrolls to a rank's row and picks its first action.
void go_to_rank(TimelineView& timeline, int rank);

}  // namespace pipewright::gui
