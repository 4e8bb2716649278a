#include "v_backfill.hpp"

#include <algorithm>
#include <limits>

namespace pipewright::plan {
namespace {

/// A place in a rank's list: when the action runs, and when it could with all that it needs.
struct Slot {
  Action action;
  double ready;
  double start;
  double duration;
  double end() const { return start + duration; }
};

std::vector<std::vector<Slot>> timed(const Schedule& schedule, const ScheduleCosts& costs) {
  const int ranks = static_cast<int>(schedule.ranks.size());
  const StartTimes starts = start_times(schedule, costs);
  HopEnds ends(ranks, schedule.microbatches);
  std::vector<std::vector<Slot>> rows(starts.size());
  for (std::size_t rank = 0; rank < starts.size(); ++rank)
    for (std::size_t i = 0; i < starts[rank].size(); ++i) {
      const Action& action = schedule.ranks[rank][i];
      rows[rank].push_back({action, 0, starts[rank][i], duration_of(action, costs)});
      if (action.kind != ActionKind::WeightGradient)
        ends.set(hop_of(action, ranks), action.microbatch, rows[rank].back().end());
    }
  for (auto& row : rows)
    for (Slot& slot : row) {
      const int hop = hop_of(slot.action, ranks);
      const int m = slot.action.microbatch;
      slot.ready = slot.action.kind == ActionKind::WeightGradient
                       ? ends(hop, m)
                       : ends.ready(hop, m, costs.transfer);
    }
  return rows;
}

/// A rank's list, and what is soonest ready of it from each place on.
struct Row {
  explicit Row(std::vector<Slot>& of) : slots(of), soonest(of.size()) {
    for (const Slot& slot : slots)
      shortest = std::min(shortest, slot.duration);
    update_soonest(0, slots.size());
  }

  void update_soonest(std::size_t begin, std::size_t end) {
    for (std::size_t at = end; at-- > begin;)
      soonest[at] =
          at + 1 < slots.size() ? std::min(slots[at].ready, soonest[at + 1]) : slots[at].ready;
  }

  /// Whether nothing from this place on can run within the time; most actions are ready only later.
  bool has_none_for(std::size_t from, double idle_from, double idle_to) const {
    return std::max(idle_from, soonest[from]) + shortest > idle_to;
  }

  std::vector<Slot>& slots;
  std::vector<double> soonest;
  double shortest = std::numeric_limits<double>::infinity();
};

/// Fills the idle time before a slot, at which the rank keeps `kept`, with the first later action
/// that fits. What starts before the slot does can need nothing that comes after it.
bool fill(Row& of, std::size_t gap, double idle_from, Kept kept, const Kept& limit) {
  std::vector<Slot>& row = of.slots;
  const double idle_to = row[gap].start;
  Kept highest = kept;
  for (std::size_t later = gap; later < row.size(); ++later) {
    if (of.has_none_for(later, idle_from, idle_to))
      return false;
    Slot moved = row[later];
    moved.start = std::max(idle_from, moved.ready);
    const Kept change = kept_by(moved.action.kind);
    if (moved.start < idle_to && moved.end() <= idle_to && (highest + change).fits(limit)) {
      const auto at = [&](std::size_t index) { return row.begin() + static_cast<long>(index); };
      std::rotate(at(gap), at(later), at(later + 1));
      row[gap] = moved;
      of.update_soonest(gap, later + 1);
      return true;
    }
    kept += change;
    highest = {std::max(highest.units, kept.units), std::max(highest.whole, kept.whole)};
  }
  return false;
}

bool fill_gaps(std::vector<Slot>& row, const Kept& limit) {
  Row searched(row);
  bool moved = false;
  Kept kept;
  double idle_from = row.front().start;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i].start > idle_from)
      moved |= fill(searched, i, idle_from, kept, limit);
    kept += kept_by(row[i].action.kind);
    idle_from = row[i].end();
  }
  return moved;
}

}  // namespace

Schedule backfill(Schedule schedule, const ScheduleCosts& costs, const std::vector<Kept>& limits) {
  for (bool moved = true; moved;) {
    moved = false;
    auto rows = timed(schedule, costs);
    for (std::size_t rank = 0; rank < rows.size(); ++rank) {
      moved |= fill_gaps(rows[rank], limits[rank]);
      std::transform(rows[rank].begin(), rows[rank].end(), schedule.ranks[rank].begin(),
                     [](const Slot& slot) { return slot.action; });
    }
  }
  return schedule;
}

}  // namespace pipewright::plan
