#include "v_block.hpp"

#include <algorithm>
#include <queue>

namespace pipewright::plan {
namespace {

constexpr int interval = 6;  // slots for forward, input and weight gradient of two stages

/// The content of a slot of a rank: a hop of leg 0 .. 3, a weight gradient, or nothing. The
/// microbatch is implied, because microbatches keep their order within a leg, and weight gradients
/// have the order of the input gradients.
using Cell = int;
constexpr Cell weight_gradient = v_legs;
constexpr Cell idle = -1;
using BlockRow = std::vector<Cell>;

bool is_forward(Cell cell) { return cell == 0 || cell == 1; }

bool is_input_gradient(Cell cell) { return cell == 2 || cell == 3; }

void put(BlockRow& row, int slot, Cell cell) {
  if (slot >= static_cast<int>(row.size()))
    row.resize(static_cast<std::size_t>(slot) + 1, idle);
  row[static_cast<std::size_t>(slot)] = cell;
}

std::vector<BlockRow> repeated(const Block& block, int microbatches) {
  std::vector<BlockRow> rows(block.size());
  for (std::size_t rank = 0; rank < block.size(); ++rank)
    for (int leg = 0; leg < v_legs; ++leg)
      for (int m = 0; m < microbatches; ++m)
        put(rows[rank], block[rank][static_cast<std::size_t>(leg)] + interval * m, leg);
  return rows;
}

/// Puts each weight gradient into the first idle slot after its input gradient.
void fill_with_weight_gradients(BlockRow& row) {
  int owed = 0;
  for (Cell& cell : row) {
    if (is_input_gradient(cell))
      ++owed;
    if (cell == idle && owed > 0) {
      cell = weight_gradient;
      --owed;
    }
  }
  row.insert(row.end(), static_cast<std::size_t>(owed), weight_gradient);
}

void drop_weight_gradients(BlockRow& row) {
  std::replace(row.begin(), row.end(), weight_gradient, idle);
  while (row.back() == idle)
    row.pop_back();
}

/// Returns the largest number of activations kept at once.
int peak(const BlockRow& row) {
  int kept = 0, most = 0;
  for (const Cell cell : row) {
    kept += is_forward(cell) ? 1 : cell == weight_gradient ? -1 : 0;
    most = std::max(most, kept);
  }
  return most;
}

/// Returns the peak of a row after weight gradients have filled its idle slots.
int peak_when_filled(BlockRow row) {
  fill_with_weight_gradients(row);
  return peak(row);
}

/// Iterates over the rows slot by slot. It tracks which microbatch a cell belongs to, and the slots
/// of the hops so far.
class Walk {
 public:
  explicit Walk(std::size_t ranks)
      : ranks_(static_cast<int>(ranks)), seen_(ranks), hop_slots_(4 * ranks), last_(ranks) {}

  /// Returns the microbatch of the rank's next cell of this kind.
  int microbatch(int rank, Cell cell) const {
    return seen_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(cell)];
  }

  /// Returns the first slot in which the next cell of this kind may run, after its dependencies.
  int earliest(const BlockRow& row, int rank, Cell cell) const {
    const auto m = static_cast<std::size_t>(microbatch(rank, cell));
    const int after_same_kind =
        last_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(cell)];
    if (cell == weight_gradient)
      return std::max(after_same_kind, slot_of_input_gradient(row, m) + 1);
    const int hop = hop_of_leg(cell, rank, ranks_);
    return hop == 0
               ? after_same_kind
               : std::max(after_same_kind, hop_slots_[static_cast<std::size_t>(hop - 1)][m] + 1);
  }

  void pass(int rank, Cell cell, int slot) {
    ++seen_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(cell)];
    last_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(cell)] = slot + 1;
    if (cell != weight_gradient)
      hop_slots_[static_cast<std::size_t>(hop_of_leg(cell, rank, ranks_))].push_back(slot);
  }

 private:
  static int slot_of_input_gradient(const BlockRow& row, std::size_t number) {
    for (std::size_t slot = 0;; ++slot)
      if (is_input_gradient(row[slot]) && number-- == 0)
        return static_cast<int>(slot);
  }

  int ranks_;
  std::vector<std::array<int, v_legs + 1>> seen_;
  std::vector<std::vector<int>> hop_slots_;  // by hop, then by microbatch
  std::vector<std::array<int, v_legs + 1>> last_;
};

/// Calls `visit(slot, rank)` for every cell that is not idle, in order of time.
template <class Visit>
void for_each_cell(const std::vector<BlockRow>& rows, const Visit& visit) {
  std::size_t slots = 0;
  for (const BlockRow& row : rows)
    slots = std::max(slots, row.size());
  for (std::size_t slot = 0; slot < slots; ++slot)
    for (std::size_t rank = 0; rank < rows.size(); ++rank)
      if (slot < rows[rank].size() && rows[rank][slot] != idle)
        visit(static_cast<int>(slot), static_cast<int>(rank));
}

/// Removes the slots in which all ranks wait, without changing the order of any rank.
std::vector<BlockRow> squeezed(const std::vector<BlockRow>& rows) {
  std::vector<BlockRow> result(rows.size());
  Walk walk(rows.size());
  for_each_cell(rows, [&](int slot, int rank) {
    BlockRow& row = result[static_cast<std::size_t>(rank)];
    const Cell cell = rows[static_cast<std::size_t>(rank)][static_cast<std::size_t>(slot)];
    const int after_row = static_cast<int>(row.size());
    const int to =
        cell == weight_gradient ? after_row : std::max(after_row, walk.earliest(row, rank, cell));
    put(row, to, cell);
    walk.pass(rank, cell, to);
  });
  return result;
}

/// Moves the cell to the first idle slot that keeps the peak, and returns its new slot.
int move_forward(BlockRow& row, int earliest, int slot, int most, int (*peak_of)(const BlockRow&)) {
  auto& from = row[static_cast<std::size_t>(slot)];
  for (int to = earliest; to < slot; ++to) {
    auto& cell = row[static_cast<std::size_t>(to)];
    if (cell != idle)
      continue;
    std::swap(cell, from);
    if (peak_of(row) <= most)
      return to;
    std::swap(cell, from);
  }
  return slot;
}

enum class Phase { WarmUp, Steady, CoolDown };

/// Moves cells as early as the peak allows: those of the cool-down and, if weight gradients have
/// been placed, those of the warm-up. The steady phase, from the end of the first microbatch to the
/// start of the last, stays as it is.
std::vector<BlockRow> reordered(std::vector<BlockRow> rows, int microbatches, bool placed) {
  const auto peak_of = placed ? &peak : +[](const BlockRow& row) { return peak_when_filled(row); };
  int most = 0;
  for (const BlockRow& row : rows)
    most = std::max(most, peak_of(row));

  Phase phase = Phase::WarmUp;
  Walk walk(rows.size());
  for_each_cell(rows, [&](int slot, int rank) {
    BlockRow& row = rows[static_cast<std::size_t>(rank)];
    const Cell cell = row[static_cast<std::size_t>(slot)];
    if (phase == Phase::WarmUp && rank == 0 && cell == v_legs - 1)
      phase = Phase::Steady;
    const bool moves = phase == Phase::CoolDown || (phase == Phase::WarmUp && placed);
    if (phase == Phase::Steady && cell == 0 && walk.microbatch(rank, cell) == microbatches - 1)
      phase = Phase::CoolDown;
    walk.pass(
        rank, cell,
        moves ? move_forward(row, walk.earliest(row, rank, cell), slot, most, peak_of) : slot);
  });
  return rows;
}

Schedule to_schedule(const std::vector<BlockRow>& rows, int microbatches) {
  const int ranks = static_cast<int>(rows.size());
  Schedule schedule{.microbatches = microbatches, .ranks = {}};
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<Action> actions;
    std::array<int, v_legs> next{};
    std::queue<Action> owed;
    for (const Cell cell : rows[static_cast<std::size_t>(rank)]) {
      if (cell == weight_gradient) {
        actions.push_back(owed.front());
        owed.pop();
      } else if (cell != idle) {
        const int m = next[static_cast<std::size_t>(cell)]++;
        actions.push_back(action_of_hop(hop_of_leg(cell, rank, ranks), m, ranks));
        if (is_input_gradient(cell))
          owed.push({ActionKind::WeightGradient, actions.back().stage, m});
      }
    }
    schedule.ranks.push_back(std::move(actions));
  }
  return schedule;
}

}  // namespace

Schedule repeat_block(const Block& block, int microbatches) {
  const auto for_each_row = [](std::vector<BlockRow>& rows, void (*change)(BlockRow&)) {
    std::for_each(rows.begin(), rows.end(), change);
  };
  std::vector<BlockRow> rows = repeated(block, microbatches);
  for_each_row(rows, fill_with_weight_gradients);
  rows = squeezed(reordered(rows, microbatches, true));

  // Reorders forwards and input gradients again, now without the old positions of weight gradients.
  for_each_row(rows, drop_weight_gradients);
  rows = reordered(rows, microbatches, false);
  for_each_row(rows, fill_with_weight_gradients);
  rows = squeezed(rows);

  for_each_row(rows, drop_weight_gradients);
  for_each_row(rows, fill_with_weight_gradients);
  return to_schedule(rows, microbatches);
}

}  // namespace pipewright::plan
