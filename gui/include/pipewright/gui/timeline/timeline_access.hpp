#pragma once

// The timeline for assistive technology: rows with their busy time, containing actions and idle
// intervals, each of which can be pressed to select it. Tests use it as well.

namespace pipewright::gui {

class TimelineView;

/// Registers it with Qt; repeated calls are harmless.
void install_timeline_access();
/// Announces the current selection to assistive technology.
void announce_pick(TimelineView& view);

}  // namespace pipewright::gui
