#pragma once

// Finds the events on the timeline that belong to a table row: a stage, a link, or a cause of a
// prediction error.

#include <cstdint>
#include <vector>

#include "pipewright/gui/document/workspace.hpp"
#include "pipewright/loop/compare/action_comparison.hpp"

namespace pipewright::gui {

/// Events of the front table: those to outline, and the one to show first.
struct Places {
  std::vector<std::uint64_t> events;
  Picked first;
};

/// Returns the computes of a stage, on one rank or on all (-1). The longest one comes first.
Places places_of_stage(const Workspace& workspace, int stage, int rank = -1);
/// Returns the sends from one rank to another.
Places places_of_link(const Workspace& workspace, int from, int to);
Places places_of(const Workspace& workspace, const loop::ResidualCause& cause);

/// An action of the front table and its counterpart in the ghost.
struct ActionDifference {
  loop::ActionPair pair;
  std::size_t nth = 0;  // ordinal among the actions with the same rank and name
  double longer() const { return pair.measured.value - pair.predicted.value; }
};
/// Returns the actions of the front table that differ most from the ghost's, the largest difference
/// first; none if there is no ghost, or if there are too many actions to compare at once.
std::vector<ActionDifference> worst_actions(const Workspace& workspace, std::size_t most);

}  // namespace pipewright::gui
