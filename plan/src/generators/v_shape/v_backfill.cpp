#include "v_backfill.hpp"

#include <algorithm>
#include <limits>

namespace pipewright::plan {
namespace {

/// An action in a rank's list, when its inputs are ready, and when it runs.
struct Slot {
  Action action;
  double ready;
  double start;
  double duration;
  double end() const { return start + duration; }
};

/// The lists of all ranks with the times of their slots.
class TimedRows {
 public:
  TimedRows(const Schedule& schedule, const ScheduleCosts& costs)
      : ranks_(static_cast<int>(schedule.ranks.size())),
        transfer_(costs.transfer),
        ends_(ranks_, schedule.microbatches),
        next_(schedule.ranks.size()),
        changed_(schedule.ranks.size(), true) {
    for (const auto& actions : schedule.ranks) {
      auto& row = rows_.emplace_back();
      for (const Action& action : actions)
        row.push_back({action, -1, -1, duration_of(action, costs)});
    }
  }

  std::vector<Slot>& operator[](std::size_t rank) { return rows_[rank]; }
  std::size_t size() const { return rows_.size(); }
  /// Returns true if a slot of the rank changed its position or time since the last call.
  bool take_change(std::size_t rank) {
    const bool change = changed_[rank];
    changed_[rank] = false;
    return change;
  }
  void note_change(std::size_t rank) { changed_[rank] = true; }

  /// Computes all times: every slot runs in its position, as early as possible.
  void time() {
    ends_.clear();
    std::fill(next_.begin(), next_.end(), 0);
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t rank = 0; rank < rows_.size(); ++rank)
        for (; next_[rank] < rows_[rank].size() && time(rank, next_[rank]); ++next_[rank])
          progress = true;
    }
  }

 private:
  /// Sets the time of a slot. Returns false if an input has no time yet.
  bool time(std::size_t rank, std::size_t place) {
    Slot& slot = rows_[rank][place];
    const int hop = hop_of(slot.action, ranks_);
    const int m = slot.action.microbatch;
    const bool is_hop = slot.action.kind != ActionKind::WeightGradient;
    if (is_hop && !ends_.can_start(hop, m))
      return false;
    const double ready = is_hop ? ends_.ready(hop, m, transfer_) : ends_(hop, m);
    const double free_at = place > 0 ? rows_[rank][place - 1].end() : 0;
    const double start = std::max(free_at, ready);
    if (ready != slot.ready || start != slot.start)
      changed_[rank] = true;
    slot.ready = ready;
    slot.start = start;
    if (is_hop)
      ends_.set(hop, m, slot.end());
    return true;
  }

  int ranks_;
  Seconds transfer_;
  HopEnds ends_;
  std::vector<std::vector<Slot>> rows_;
  std::vector<std::size_t> next_;
  std::vector<bool> changed_;
};

/// A rank's list, with the earliest ready time at or after each position.
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

  /// Returns true if no action at or after this position fits into the time. This is quick to see,
  /// because most actions are ready only later.
  bool has_none_for(std::size_t from, double idle_from, double idle_to) const {
    return std::max(idle_from, soonest[from]) + shortest > idle_to;
  }

  std::vector<Slot>& slots;
  std::vector<double> soonest;
  double shortest = std::numeric_limits<double>::infinity();
};

/// Fills the idle time before a slot with the first later action that fits. `kept` is what the rank
/// keeps at that time. An action that starts before the slot cannot depend on anything after it.
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
  TimedRows rows(schedule, costs);
  for (bool moved = true; moved;) {
    moved = false;
    rows.time();
    for (std::size_t rank = 0; rank < rows.size(); ++rank)
      // Unless the row has changed, nothing fits, as in the last round.
      if (rows.take_change(rank) && fill_gaps(rows[rank], limits[rank])) {
        rows.note_change(rank);
        moved = true;
      }
  }
  for (std::size_t rank = 0; rank < rows.size(); ++rank)
    std::transform(rows[rank].begin(), rows[rank].end(), schedule.ranks[rank].begin(),
                   [](const Slot& slot) { return slot.action; });
  return schedule;
}

}  // namespace pipewright::plan
