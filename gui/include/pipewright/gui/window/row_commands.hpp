#pragma once

// Commands for the row of the selection: pin, collapse, move.

#include "pipewright/gui/document/workspace.hpp"
#include "pipewright/gui/timeline/timeline_view.hpp"
#include "pipewright/gui/window/commands.hpp"

namespace pipewright::gui {

/// Returns the rank of the selection, or of the top row; nothing if there are no rows.
std::optional<int> current_rank(const TimelineView& timeline);

/// Returns the rows with one moved up or down among the visible ones.
RowState moved_row(RowState state, const RowLayout& seen, int ranks, int rank, int by);

/// All arguments must outlive the commands.
void add_row_commands(Commands& commands, const Workspace& workspace, TimelineView& timeline);
/// Adds commands that arrange the workers of a whole job. Both arguments must outlive the commands.
void add_job_commands(Commands& commands, Workspace& workspace);

/// Scrolls to a rank's row and selects its first action.
void go_to_rank(TimelineView& timeline, int rank);

}  // namespace pipewright::gui
