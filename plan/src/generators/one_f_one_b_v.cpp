#include <algorithm>
#include <array>

#include "closed_forms.hpp"
#include "schedules/sizes.hpp"

namespace pipewright::plan {
namespace {

// The schedule has two chunks per rank in a V. Every pass takes one time slot, a backward two. A
// microbatch has the slots of `block`, and the next microbatch those six slots later. At the start
// and at the end, where some slots are free, passes move into earlier slots; forwards only as far
// as memory allows.

enum Pass { ForwardDown, ForwardUp, BackwardDown, BackwardUp, RestDown, RestUp };
/// BackwardDown is the backward of the last chunk, which mirrors the way down.
constexpr int passes = 6;
constexpr int period = 6;
constexpr int empty = -1;

using RankSlots = std::vector<std::array<int, passes>>;  // by rank

/// Returns the slots of one microbatch on each rank. It goes down and up the ranks, and back the
/// same way.
RankSlots block(int ranks) {
  RankSlots slots(static_cast<std::size_t>(ranks));
  const auto of = [&](int rank) -> auto& { return slots[static_cast<std::size_t>(rank)]; };
  int now = 0;
  for (int rank = 0; rank < ranks; ++rank)
    of(rank)[ForwardDown] = now++;
  for (int rank = ranks - 1; rank >= 0; --rank)
    of(rank)[ForwardUp] = now++;
  // After every third hop a backward waits, so that no two passes of a rank collide modulo the
  // period.
  if (ranks % 3 == 0)
    now += 3;
  int hops = (3 - (ranks + 2) % 3) % 3;
  const auto back = [&](int rank, Pass pass, Pass rest) {
    of(rank)[pass] = now;
    of(rank)[rest] = now + 1;
    now += 2;
    if (++hops == 3) {
      hops = 0;
      now += 3;
    }
  };
  for (int rank = 0; rank < ranks; ++rank)
    back(rank, BackwardDown, RestDown);
  for (int rank = ranks - 1; rank >= 0; --rank)
    back(rank, BackwardUp, RestUp);
  return slots;
}

class Board {
 public:
  Board(int ranks, int microbatches) : ranks_(ranks), microbatches_(microbatches) {
    const RankSlots slots = block(ranks);
    int length = 0;
    for (const auto& own : slots)
      length = std::max(length, *std::max_element(own.begin(), own.end()) + 1);
    length += period * (microbatches - 1);
    at_.assign(static_cast<std::size_t>(ranks),
               std::vector<int>(static_cast<std::size_t>(length) + 1, empty));
    ends_.assign(static_cast<std::size_t>(ranks) * passes * static_cast<std::size_t>(microbatches),
                 -1);
    for (int rank = 0; rank < ranks; ++rank)
      for (int pass = 0; pass < passes; ++pass)
        for (int m = 0; m < microbatches; ++m)
          cell(rank, slots[static_cast<std::size_t>(rank)][static_cast<std::size_t>(pass)] +
                         period * m) = pass;
    length_ = length;
    count_memory();
  }

  void move_up() {
    std::vector<std::array<int, passes>> seen(static_cast<std::size_t>(ranks_));
    for (int slot = 0; slot < length_; ++slot)
      for (int rank = 0; rank < ranks_; ++rank)
        if (const int pass = cell(rank, slot); pass != empty) {
          const int m = seen[static_cast<std::size_t>(rank)][static_cast<std::size_t>(pass)]++;
          place(rank, m, pass, slot);
        }
  }

  std::vector<Action> actions(int rank) const {
    std::array<int, passes> next{};
    std::vector<Action> actions;
    const int down = rank, up = 2 * ranks_ - 1 - rank;
    for (const int pass : at_[static_cast<std::size_t>(rank)]) {
      if (pass == empty || pass == RestDown || pass == RestUp)
        continue;
      const int m = next[static_cast<std::size_t>(pass)]++;
      actions.push_back(
          {pass == ForwardDown || pass == ForwardUp ? ActionKind::Forward : ActionKind::Backward,
           pass == ForwardDown || pass == BackwardUp ? down : up, m});
    }
    return actions;
  }

 private:
  int& cell(int rank, int slot) {
    return at_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(slot)];
  }
  int& end(int rank, int pass, int m) {
    return ends_[(static_cast<std::size_t>(rank) * passes + static_cast<std::size_t>(pass)) *
                     static_cast<std::size_t>(microbatches_) +
                 static_cast<std::size_t>(m)];
  }

  void count_memory() {
    for (auto& row : at_) {
      auto& held = held_.emplace_back();
      int sum = 0;
      for (const int pass : row) {
        sum += pass == ForwardDown || pass == ForwardUp ? 1
               : pass == RestDown || pass == RestUp     ? -1
                                                        : 0;
        held.push_back(sum);
        most_ = std::max(most_, sum);
      }
    }
  }

  /// Returns the slot of the pass that this pass depends on. A backward ends with its second half.
  int needed(int rank, int pass, int m) {
    int slot = m > 0 ? end(rank, pass, m - 1) : -1;
    const auto also = [&](int other_rank, int other) {
      slot = std::max(slot, end(other_rank, other, m));
    };
    switch (pass) {
      case ForwardDown:
        if (rank > 0)
          also(rank - 1, ForwardDown);
        break;
      case ForwardUp:
        rank + 1 < ranks_ ? also(rank + 1, ForwardUp) : also(rank, ForwardDown);
        break;
      case BackwardDown:
        rank > 0 ? also(rank - 1, RestDown) : also(rank, ForwardUp);
        break;
      case BackwardUp:
        rank + 1 < ranks_ ? also(rank + 1, RestUp) : also(rank, RestDown);
        break;
      case RestDown:
        also(rank, BackwardDown);
        break;
      default:
        also(rank, BackwardUp);
    }
    return slot;
  }

  void place(int rank, int m, int pass, int slot) {
    const auto taken = [&](int at) { return cell(rank, at) != empty; };
    auto& held = held_[static_cast<std::size_t>(rank)];
    int to = needed(rank, pass, m) + 1;
    if (pass == ForwardDown || pass == ForwardUp) {
      int earliest = slot;
      while (earliest > to && held[static_cast<std::size_t>(earliest) - 1] < most_)
        --earliest;
      to = std::max(to, earliest);
    }
    const bool takes_two = pass == BackwardDown || pass == BackwardUp;
    while (to < slot && (taken(to) || (takes_two && taken(to + 1))))
      ++to;
    end(rank, pass, m) = to;
    if (to == slot)
      return;
    std::swap(cell(rank, to), cell(rank, slot));
    const int change = pass == ForwardDown || pass == ForwardUp ? 1 : takes_two ? 0 : -1;
    for (int at = to; at < slot; ++at)
      held[static_cast<std::size_t>(at)] += change;
  }

  int ranks_;
  int microbatches_;
  int length_ = 0;
  std::vector<std::vector<int>> at_;    // by rank and slot: the pass
  std::vector<std::vector<int>> held_;  // by rank and slot: activations kept after it
  std::vector<int> ends_;               // by rank, pass and microbatch: the slot of its end
  int most_ = 0;                        // largest of held_
};

Schedule make_1f1b_v(int ranks, int microbatches) {
  check_sizes("1f1b-v", ranks, microbatches, 2);
  Board board(ranks, microbatches);
  board.move_up();
  Schedule schedule{.microbatches = microbatches, .ranks = {}};
  for (int rank = 0; rank < ranks; ++rank)
    schedule.ranks.push_back(board.actions(rank));
  return schedule;
}

}  // namespace

/// 1F1B in a V (Qi et al., "Pipeline Parallelism with Controllable Memory", NeurIPS 2024, section
/// 4): backwards in one go, in the slots of a repeated block.
ScheduleDescriptor schedule::one_f_one_b_v() {
  return {.name = "1f1b-v",
          .planned = Planned::OnRequest,
          .chunks = Chunks::Two,
          .make = [](const ScheduleRequest& r) -> GeneratedSchedule {
            return {make_1f1b_v(r.ranks, r.microbatches)};
          },
          .bubble = part_of_flush_bubble("(P-1)(F+B)", 1, 1),
          .activations = {.words = "floor(2P/3) + 1",
                          .value = [](const ScheduleSizes& s) { return 2 * s.ranks / 3 + 1; },
                          .is_limit = true}};
}

}  // namespace pipewright::plan
