#pragma once

// The timeline for those who do not see it: rows with what they are busy with, in them actions and
// idle stretches, each of which can be pressed to be picked. Tests act through it as well.

namespace pipewright::gui {

class TimelineView;

/// Tells Qt of it; more than once does no harm.
void install_timeline_access();
/// Tells whoever listens what is picked now.
void announce_pick(TimelineView& view);

}  // namespace pipewright::gui
