#pragma once

// The order in which ranks stand below each other, and where, as a value.

#include <set>
#include <span>
#include <string>
#include <vector>

#include "pipewright/gui/timeline/painted_table.hpp"

namespace pipewright::gui {

/// Ranks that belong together stand below a heading.
struct RowGroups {
  std::vector<int> of{};  // by rank, a place in `names`; -1, and for ranks beyond its end: none
  std::vector<std::string> names{};
  friend bool operator==(const RowGroups&, const RowGroups&) = default;
};

/// A figure beside each name.
struct RowNotes {
  std::string title{};            // above them
  std::vector<std::string> of{};  // by rank; beyond its end: nothing
};

/// What a person has done to the rows.
struct RowState {
  std::vector<int> order;  // ranks; those that are missing follow in their own order
  std::set<int> pinned;    // stay at the top, with their names
  std::set<int> collapsed;
  std::string filter;  // of the ranks' names; empty: all
  RowGroups groups{};  // those of a group should stand together in `order`
  friend bool operator==(const RowState&, const RowState&) = default;
};

struct PlacedRow {
  int rank = 0;
  double top = 0;  // pixels; of pinned ones on the screen, of others from the first of them
  double height = 0;
  bool pinned = false;
  bool collapsed = false;
};

/// Stands above the first row of a group, among those that are not pinned.
struct PlacedHeading {
  int group = 0;
  double top = 0;
  double height = 0;
};

struct RowLayout {
  std::vector<PlacedRow> rows;  // pinned ones first
  std::size_t pinned = 0;       // so many are
  double pinned_height = 0;
  double height = 0;  // of those that are not pinned, with their headings
  std::vector<PlacedHeading> headings{};
  std::vector<int> place{};  // by rank, in `rows`; -1: not shown

  /// Null where it is not shown.
  const PlacedRow* row_of(int rank) const;
  /// Those that are not pinned and have a pixel in [top, bottom).
  std::span<const PlacedRow> rows_between(double top, double bottom) const;
};

/// Rows share `room` pixels as far as each stays between its least and greatest height; one that
/// marks steps alone is low.
RowLayout lay_out_rows(const plan::EventTable& table, const RowState& state, double room,
                       bool with_ghost);

/// The ranks from top to bottom after one was moved before another; -1: to the end.
std::vector<int> moved_before(std::vector<int> order, int rank, int before);
/// All ranks in the order of a state.
std::vector<int> ordered_ranks(const RowState& state, int ranks);

/// A track within its row.
struct TrackBand {
  std::size_t track = 0;
  double top = 0;  // from the top of the row
  double height = 0;
};
/// Compute tall, transfers and collectives thin below it.
std::vector<TrackBand> bands_of(const PaintedTable& table, int rank, double top, double height);

}  // namespace pipewright::gui
