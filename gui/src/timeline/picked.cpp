#include "pipewright/gui/timeline/picked.hpp"

#include <algorithm>
#include <cstdio>

#include "pipewright/gui/timeline/painted_table.hpp"

namespace pipewright::gui {

Picked picked_at(const PaintedTable& table, int rank, double time) {
  if (rank < 0 || rank >= table.table().ranks || time < 0 || time > table.length())
    return {};
  // The whole gap, whatever its causes.
  const auto tracks = table.tracks_of(rank);
  double start = 0, end = table.length();
  for (std::size_t track = tracks.begin; track < tracks.end; ++track) {
    if (!table.is_busy_track(track))
      continue;
    const BusySums& sums = table.sums(track);
    const std::uint64_t begun = sums.begun_before(time);
    if (begun > 0 && sums.end(begun - 1) > time)
      return PickedEvent{false, table.table().tracks[track].begin + begun - 1};
    if (begun > 0)
      start = std::max(start, sums.end(begun - 1));
    if (begun < sums.size())
      end = std::min(end, sums.start(begun));
  }
  return PickedIdle{rank, time, start, end};
}

std::optional<Pointed> picked_from(const std::string& text) {
  Pointed at;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%d-%d@%lf-%lf%c", &at.first_rank, &at.last_rank, &at.first,
                  &at.last, &rest) == 4) {
    at.first /= 1e3;
    at.last /= 1e3;
  } else if (std::sscanf(text.c_str(), "%d@%lf%c", &at.first_rank, &at.first, &rest) == 2) {
    at.last_rank = at.first_rank;
    at.last = at.first /= 1e3;
  } else {
    return {};
  }
  if (at.first_rank < 0 || at.last_rank < at.first_rank || !(at.first <= at.last))
    return {};
  return at;
}

Picked picked_in(const PaintedTable& table, const Pointed& at) {
  if (at.first == at.last && at.first_rank == at.last_rank)
    return picked_at(table, at.first_rank, at.first);
  PickedArea area{at.first, at.last, {}};
  for (int rank = at.first_rank; rank <= std::min(at.last_rank, table.table().ranks - 1); ++rank)
    area.ranks.push_back(rank);
  return area;
}

}  // namespace pipewright::gui
