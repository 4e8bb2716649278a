#include "pipewright/gui/window/row_commands.hpp"

#include <QScrollBar>
#include <algorithm>

namespace pipewright::gui {

std::optional<int> current_rank(const TimelineView& timeline) {
  const TimelineModel& model = timeline.model();
  if (const auto span = model.tables.span_of(model.marks.picked); span && span->rank >= 0)
    return span->rank;
  const auto& rows = model.layout.rows.rows;
  return rows.empty() ? std::nullopt : std::optional(rows.front().rank);
}

RowState moved_row(RowState state, const RowLayout& seen, int ranks, int rank, int by) {
  const auto at = std::find_if(seen.rows.begin(), seen.rows.end(),
                               [&](const PlacedRow& row) { return row.rank == rank; });
  if (at == seen.rows.end())
    return state;
  const auto place = at - seen.rows.begin() + by;
  if (place < 0 || place >= static_cast<std::ptrdiff_t>(seen.rows.size()))
    return state;
  const int other = seen.rows[static_cast<std::size_t>(place)].rank;
  std::vector<int> order = ordered_ranks(state, ranks);
  if (by < 0) {
    order = moved_before(std::move(order), rank, other);
  } else {
    std::erase(order, rank);
    order.insert(std::find(order.begin(), order.end(), other) + 1, rank);
  }
  state.order = std::move(order);
  return state;
}

void go_to_rank(TimelineView& timeline, int rank) {
  if (!timeline.front() || rank < 0 || rank >= timeline.front()->table().ranks)
    return;
  const RowLayout& layout = timeline.model().layout.rows;
  for (const PlacedRow& row : layout.rows)
    if (row.rank == rank && !row.pinned)
      timeline.verticalScrollBar()->setValue(static_cast<int>(row.top));
  const auto tracks = timeline.front()->tracks_of(rank);
  if (tracks.begin < tracks.end) {
    const plan::EventTrack& track = timeline.front()->table().tracks[tracks.begin];
    if (track.begin < track.end)
      timeline.pick(PickedEvent{false, track.begin});
  }
  timeline.setFocus();
}

void add_row_commands(Commands& commands, const Workspace& workspace, TimelineView& timeline) {
  const auto has_rows = [&workspace] { return workspace.front() != nullptr; };
  const auto toggle = [&timeline](std::set<int> RowState::*set) {
    const auto rank = current_rank(timeline);
    if (!rank)
      return;
    RowState state = timeline.model().rows;
    if ((state.*set).erase(*rank) == 0)
      (state.*set).insert(*rank);
    timeline.set_rows(std::move(state));
  };
  const auto move = [&timeline](int by) {
    if (const auto rank = current_rank(timeline))
      timeline.set_rows(moved_row(timeline.model().rows, timeline.model().layout.rows,
                                  timeline.front()->table().ranks, *rank, by));
  };
  commands.add(
      "rows.pin", "View", "Pin or unpin this row", QKeySequence("P"),
      [toggle] { toggle(&RowState::pinned); }, has_rows);
  commands.add(
      "rows.collapse", "View", "Collapse or open this row", QKeySequence("X"),
      [toggle] { toggle(&RowState::collapsed); }, has_rows);
  commands.add(
      "rows.up", "View", "Move this row up", QKeySequence("Alt+Up"), [move] { move(-1); },
      has_rows);
  commands.add(
      "rows.down", "View", "Move this row down", QKeySequence("Alt+Down"), [move] { move(1); },
      has_rows);
  commands.add(
      "rows.reset", "", "Reset all rows", {},
      [&workspace, &timeline] {
        timeline.set_rows(workspace.job() == nullptr
                              ? RowState{}
                              : job_rows(workspace.job()->layout, workspace.stragglers().get(),
                                         workspace.arrangement()));
      },
      has_rows);
}

void add_job_commands(Commands& commands, Workspace& workspace) {
  const auto add = [&](const char* id, const char* text, auto change) {
    commands.add(
        id, "", text, {},
        [&workspace, change] {
          JobArrangement arrangement = workspace.arrangement();
          change(arrangement);
          workspace.arrange(arrangement);
        },
        [&workspace] { return workspace.job() != nullptr; });
  };
  add("rows.by_worker", "Rows worker by worker",
      [](JobArrangement& rows) { rows.groups = JobGroups::None; });
  add("rows.by_replica", "Rows by replica",
      [](JobArrangement& rows) { rows.groups = JobGroups::Replicas; });
  add("rows.by_stage", "Rows by stage",
      [](JobArrangement& rows) { rows.groups = JobGroups::Stages; });
  add("rows.slowest", "Rows with the slowest worker on top",
      [](JobArrangement& rows) { rows.order = JobOrder::SlowestFirst; });
  add("rows.ranks", "Rows in the order of ranks",
      [](JobArrangement& rows) { rows.order = JobOrder::Ranks; });
}

}  // namespace pipewright::gui
