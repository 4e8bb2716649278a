#include "pipewright/gui/timeline/row_layout.hpp"

#include <algorithm>
#include <utility>

namespace pipewright::gui {
namespace {

constexpr double least_row = 18;
constexpr double greatest_row = 600;  // a single rank need not fill a tall screen
constexpr double collapsed_row = 10;
constexpr double steps_row = 22;
constexpr double heading_row = 22;
constexpr double least_wire = 4;         // a low band
constexpr double wire_part = 1 / 30.0;   // of a tall row
constexpr double least_with_wires = 26;  // lower rows show only compute

/// Returns, by rank, true if a row shows only step marks.
std::vector<char> rows_of_steps(const plan::EventTable& table) {
  std::vector<char> only(static_cast<std::size_t>(table.ranks), 0), others = only;
  for (const plan::EventTrack& track : table.tracks)
    (track.name == plan::steps_track ? only : others)[static_cast<std::size_t>(track.rank)] = 1;
  for (std::size_t rank = 0; rank < only.size(); ++rank)
    only[rank] = static_cast<char>(only[rank] != 0 && others[rank] == 0);
  return only;
}

int group_of_row(const RowGroups& groups, int rank) {
  const auto at = static_cast<std::size_t>(rank);
  return at < groups.of.size() ? groups.of[at] : -1;
}

/// Places rows below each other, and headings above the first row of each group.
void stack(RowLayout& layout, const RowGroups& groups) {
  int group = -1;
  for (PlacedRow& row : layout.rows) {
    double& end = row.pinned ? layout.pinned_height : layout.height;
    if (const int own = group_of_row(groups, row.rank); !row.pinned && own != group) {
      group = own;
      if (own >= 0) {
        layout.headings.push_back({own, end, heading_row});
        end += heading_row;
      }
    }
    row.top = end;
    end += row.height;
  }
}

}  // namespace

std::vector<int> ordered_ranks(const RowState& state, int ranks) {
  std::vector<int> order;
  std::vector<char> placed(static_cast<std::size_t>(ranks), 0);
  for (const int rank : state.order)
    if (rank >= 0 && rank < ranks && placed[static_cast<std::size_t>(rank)] == 0) {
      order.push_back(rank);
      placed[static_cast<std::size_t>(rank)] = 1;
    }
  for (int rank = 0; rank < ranks; ++rank)
    if (placed[static_cast<std::size_t>(rank)] == 0)
      order.push_back(rank);
  return order;
}

std::vector<int> moved_before(std::vector<int> order, int rank, int before) {
  if (rank == before)
    return order;
  std::erase(order, rank);
  order.insert(std::find(order.begin(), order.end(), before), rank);
  return order;
}

const PlacedRow* RowLayout::row_of(int rank) const {
  if (rank < 0 || std::cmp_greater_equal(rank, place.size()))
    return nullptr;
  const int at = place[static_cast<std::size_t>(rank)];
  return at < 0 ? nullptr : &rows[static_cast<std::size_t>(at)];
}

std::span<const PlacedRow> RowLayout::rows_between(double top, double bottom) const {
  const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(pinned);
  const auto first = std::partition_point(
      begin, rows.end(), [&](const PlacedRow& row) { return row.top + row.height <= top; });
  const auto last = std::partition_point(first, rows.end(),
                                         [&](const PlacedRow& row) { return row.top < bottom; });
  return {first, last};
}

RowLayout lay_out_rows(const plan::EventTable& table, const RowState& state, double room,
                       bool with_ghost) {
  RowLayout layout;
  const std::vector<char> marks_steps = rows_of_steps(table);
  int open = 0;
  double low = 0;  // pixels of rows with a fixed height
  for (const int rank : ordered_ranks(state, table.ranks)) {
    if (plan::rank_name(table, rank).find(state.filter) == std::string::npos)
      continue;
    PlacedRow row{rank, 0, 0, state.pinned.contains(rank), state.collapsed.contains(rank)};
    if (row.collapsed)
      row.height = collapsed_row;
    else if (marks_steps[static_cast<std::size_t>(rank)] != 0)
      row.height = steps_row;
    open += row.height == 0 ? 1 : 0;
    low += row.height;
    layout.rows.push_back(row);
  }
  const auto others = std::stable_partition(layout.rows.begin(), layout.rows.end(),
                                            [](const PlacedRow& row) { return row.pinned; });
  layout.pinned = static_cast<std::size_t>(others - layout.rows.begin());
  const double headings = heading_row * static_cast<double>(state.groups.names.size());
  const double height =
      std::clamp((room - low - headings) / std::max(1, open), least_row * (with_ghost ? 1.4 : 1.0),
                 greatest_row * (with_ghost ? 1.4 : 1.0));
  layout.place.assign(static_cast<std::size_t>(table.ranks), -1);
  for (std::size_t at = 0; at < layout.rows.size(); ++at) {
    PlacedRow& row = layout.rows[at];
    if (row.height == 0)
      row.height = height;
    layout.place[static_cast<std::size_t>(row.rank)] = static_cast<int>(at);
  }
  stack(layout, state.groups);
  return layout;
}

std::vector<TrackBand> bands_of(const PaintedTable& table, int rank, double top, double height) {
  std::vector<TrackBand> bands;
  const auto tracks = table.tracks_of(rank);
  int compute = 0, wires = 0;
  for (std::size_t track = tracks.begin; track < tracks.end; ++track)
    ++(table.table().tracks[track].row == plan::Row::Compute ? compute : wires);
  const bool show_wires = height >= least_with_wires && wires > 0 && compute > 0;
  const double wire = std::max(least_wire, height * wire_part);
  const double wires_height = show_wires ? std::min(wires * (wire + 1), height * 0.4) : 0;
  const double each = (height - wires_height) / std::max(1, compute > 0 ? compute : wires);
  const double thin = show_wires ? wires_height / wires : 0;
  double compute_top = top, wire_top = top + height - wires_height;
  for (std::size_t track = tracks.begin; track < tracks.end; ++track) {
    if (table.table().tracks[track].row == plan::Row::Compute || compute == 0) {
      bands.push_back({track, compute_top, compute > 1 ? each - 1 : each});
      compute_top += each;
    } else if (show_wires) {
      bands.push_back({track, wire_top + 1, std::max(1.0, thin - 1)});
      wire_top += thin;
    }
  }
  return bands;
}

}  // namespace pipewright::gui
