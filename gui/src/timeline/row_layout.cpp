#include "pipewright/gui/timeline/row_layout.hpp"

#include <algorithm>

namespace pipewright::gui {
namespace {

constexpr double least_row = 18;
constexpr double greatest_row = 600;  // one rank alone need not fill a tall screen
constexpr double collapsed_row = 10;
constexpr double least_wire = 4;         // a thin band
constexpr double wire_part = 1 / 30.0;   // of a tall row
constexpr double least_with_wires = 26;  // lower rows show compute alone

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

RowLayout lay_out_rows(const plan::EventTable& table, const RowState& state, double room,
                       bool with_ghost) {
  RowLayout layout;
  int open = 0, closed = 0;
  for (const int rank : ordered_ranks(state, table.ranks)) {
    if (plan::rank_name(table, rank).find(state.filter) == std::string::npos)
      continue;
    const bool collapsed = state.collapsed.contains(rank);
    ++(collapsed ? closed : open);
    layout.rows.push_back({rank, 0, 0, state.pinned.contains(rank), collapsed});
  }
  std::stable_partition(layout.rows.begin(), layout.rows.end(),
                        [](const PlacedRow& row) { return row.pinned; });
  const double height =
      std::clamp((room - closed * collapsed_row) / std::max(1, open),
                 least_row * (with_ghost ? 1.4 : 1.0), greatest_row * (with_ghost ? 1.4 : 1.0));
  for (PlacedRow& row : layout.rows) {
    row.height = row.collapsed ? collapsed_row : height;
    double& end = row.pinned ? layout.pinned_height : layout.height;
    row.top = end;
    end += row.height;
  }
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
