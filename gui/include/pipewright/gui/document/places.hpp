#pragma once

// Where on the timeline something is that a table names: a stage, a link, a cause of an error.

#include <cstdint>
#include <vector>

#include "pipewright/gui/document/workspace.hpp"
#include "pipewright/loop/compare/action_comparison.hpp"

namespace pipewright::gui {

/// Events of the front table: what is outlined, and the one to look at first.
struct Places {
  std::vector<std::uint64_t> events;
  Picked first;
};

/// What a stage computes, on one rank or on all (-1); first what takes longest.
Places places_of_stage(const Workspace& workspace, int stage, int rank = -1);
/// Sends from one rank to another.
Places places_of_link(const Workspace& workspace, int from, int to);
Places places_of(const Workspace& workspace, const loop::ResidualCause& cause);

/// An action beside the one that it is held against.
struct ActionDifference {
  loop::ActionPair pair;
  std::size_t nth = 0;  // among those of its rank and name
  double longer() const { return pair.measured.value - pair.predicted.value; }
};
/// The actions of the front table that are furthest from the ghost's, the largest first; none where
/// nothing stands behind, or where there are too many to be compared at once.
std::vector<ActionDifference> worst_actions(const Workspace& workspace, std::size_t most);

}  // namespace pipewright::gui
