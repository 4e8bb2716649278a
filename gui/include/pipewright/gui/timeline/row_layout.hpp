#pragma once

// The order of the ranks' rows and their positions, as a value.

#include <set>
#include <span>
#include <string>
#include <vector>

#include "pipewright/gui/timeline/painted_table.hpp"

namespace pipewright::gui {

/// Groups of ranks, each below a heading.
struct RowGroups {
  std::vector<int> of{};  // by rank, an index into `names`; no group: -1, or a rank beyond the end
  std::vector<std::string> names{};
  friend bool operator==(const RowGroups&, const RowGroups&) = default;
};

/// A figure next to each name.
struct RowNotes {
  std::string title{};            // above the figures
  std::vector<std::string> of{};  // by rank; beyond the end: empty
};

/// The user's changes to the rows.
struct RowState {
  std::vector<int> order;  // ranks; missing ones follow in ascending order
  std::set<int> pinned;    // stay at the top, with their names
  std::set<int> collapsed;
  std::string filter;  // substring of the ranks' names; empty: all
  RowGroups groups{};  // members of a group should be adjacent in `order`
  friend bool operator==(const RowState&, const RowState&) = default;
};

struct PlacedRow {
  int rank = 0;
  /// Pixels: on the screen for pinned rows, otherwise relative to the first row that is not pinned.
  double top = 0;
  double height = 0;
  bool pinned = false;
  bool collapsed = false;
};

/// A heading above the first row of a group, among the rows that are not pinned.
struct PlacedHeading {
  int group = 0;
  double top = 0;
  double height = 0;
};

struct RowLayout {
  std::vector<PlacedRow> rows;  // pinned ones first
  std::size_t pinned = 0;       // number of pinned rows
  double pinned_height = 0;
  double height = 0;  // of the rows that are not pinned, with their headings
  std::vector<PlacedHeading> headings{};
  std::vector<int> place{};  // by rank, an index into `rows`; -1: not shown

  /// Returns null if the row is not shown.
  const PlacedRow* row_of(int rank) const;
  /// Returns the rows that are not pinned and have a pixel in [top, bottom).
  std::span<const PlacedRow> rows_between(double top, double bottom) const;
};

/// Distributes `room` pixels over the rows, within the limits of each row's height. A row that only
/// marks steps is low.
RowLayout lay_out_rows(const plan::EventTable& table, const RowState& state, double room,
                       bool with_ghost);

/// Returns the ranks from top to bottom after one was moved before another; -1: to the end.
std::vector<int> moved_before(std::vector<int> order, int rank, int before);
/// Returns all ranks in the order of a state.
std::vector<int> ordered_ranks(const RowState& state, int ranks);

/// A track within its row.
struct TrackBand {
  std::size_t track = 0;
  double top = 0;  // from the top of the row
  double height = 0;
};
/// Returns a high band for compute, with low bands for transfers and collectives below it.
std::vector<TrackBand> bands_of(const PaintedTable& table, int rank, double top, double height);

}  // namespace pipewright::gui
