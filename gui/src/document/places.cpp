#include "pipewright/gui/document/places.hpp"

#include <algorithm>
#include <map>

#include "pipewright/plan/program/instruction.hpp"

namespace pipewright::gui {
namespace {

constexpr std::size_t most_places = 4096;
constexpr std::uint64_t most_compared = 2'000'000;  // events

double length_of(const plan::EventTable& table, std::uint64_t event) {
  return table.end[event] - table.start[event];
}

Places with_longest_first(const plan::EventTable& table, std::vector<std::uint64_t> events) {
  Places places;
  if (events.empty())
    return places;
  places.first = PickedEvent{
      false, *std::max_element(events.begin(), events.end(), [&](std::uint64_t a, std::uint64_t b) {
        return length_of(table, a) < length_of(table, b);
      })};
  if (events.size() > most_places)
    events.resize(most_places);
  places.events = std::move(events);
  return places;
}

Places places_of_row(const Workspace& workspace, int rank, plan::Row row) {
  const plan::EventTable& table = workspace.front()->table();
  std::vector<std::uint64_t> events;
  for (const plan::EventTrack& track : table.tracks)
    if (track.row == row && track.rank == rank)
      for (std::uint64_t event = track.begin; event < track.end; ++event)
        events.push_back(event);
  return with_longest_first(table, std::move(events));
}

/// Returns the rank's longest idle interval with this cause.
Places place_of_idle(const Workspace& workspace, int rank, plan::IdleCause cause) {
  const plan::EventTable::Idle* longest = nullptr;
  for (const plan::EventTable::Idle& idle : workspace.front()->table().idle)
    if (idle.rank == rank && idle.cause == static_cast<std::uint32_t>(cause) &&
        (longest == nullptr || idle.end - idle.start > longest->end - longest->start))
      longest = &idle;
  if (longest == nullptr)
    return {};
  return {{}, picked_at(*workspace.front(), rank, (longest->start + longest->end) / 2)};
}

}  // namespace

Places places_of_stage(const Workspace& workspace, int stage, int rank) {
  if (!workspace.front())
    return {};
  const plan::EventTable& table = workspace.front()->table();
  std::vector<char> is_of_stage;
  for (const std::string& name : table.names) {
    const auto instruction = plan::parse_instruction(name);
    is_of_stage.push_back(static_cast<char>(instruction && instruction->stage == stage &&
                                            plan::is_compute(instruction->kind)));
  }
  std::vector<std::uint64_t> events;
  for (const plan::EventTrack& track : table.tracks)
    if (track.row == plan::Row::Compute && (rank < 0 || track.rank == rank))
      for (std::uint64_t event = track.begin; event < track.end; ++event)
        if (is_of_stage[table.name_of[event]] != 0)
          events.push_back(event);
  return with_longest_first(table, std::move(events));
}

Places places_of_link(const Workspace& workspace, int from, int to) {
  const sim::Structure* structure = workspace.structure();
  if (!workspace.front() || structure == nullptr)
    return {};
  const plan::Dependencies& events = structure->events();
  std::vector<std::uint64_t> found;
  for (int event = 0; event < structure->size(); ++event)
    if (plan::is_send(events[event].instruction->kind) && events[event].rank == from &&
        events[events[event].partner].rank == to)
      if (const std::int64_t at = workspace.table_event(event); at >= 0)
        found.push_back(static_cast<std::uint64_t>(at));
  return with_longest_first(workspace.front()->table(), std::move(found));
}

Places places_of(const Workspace& workspace, const loop::ResidualCause& cause) {
  using Kind = loop::ResidualCause::Kind;
  if (!workspace.front())
    return {};
  switch (cause.kind) {
    case Kind::Compute:
      return places_of_stage(workspace, cause.stage, cause.rank);
    case Kind::Transfer:
      return places_of_link(workspace, cause.rank, cause.other);
    case Kind::Reduction:
      return places_of_row(workspace, cause.rank, plan::Row::Reduce);
    case Kind::Launch:
      return place_of_idle(workspace, cause.rank, plan::IdleCause::Launch);
    case Kind::Overlap:
      return {};
  }
  return {};
}

std::vector<ActionDifference> worst_actions(const Workspace& workspace, std::size_t most) {
  const auto& front = workspace.front();
  const auto& ghost = workspace.ghost();
  if (!front || !ghost || front->table().size() > most_compared ||
      ghost->table().size() > most_compared)
    return {};
  const loop::ActionComparison compared =
      loop::compare_actions(plan::timeline_of(ghost->table()), plan::timeline_of(front->table()));
  std::map<std::pair<int, std::string>, std::size_t> seen;
  std::vector<ActionDifference> found;
  for (const loop::ActionPair& pair : compared.pairs)
    found.push_back({pair, seen[{pair.rank, pair.action}]++});
  std::stable_sort(found.begin(), found.end(),
                   [](const ActionDifference& a, const ActionDifference& b) {
                     return std::abs(a.longer()) > std::abs(b.longer());
                   });
  found.resize(std::min(most, found.size()));
  return found;
}

}  // namespace pipewright::gui
