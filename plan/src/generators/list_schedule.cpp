#include "list_schedule.hpp"

#include <algorithm>
#include <limits>
#include <optional>

namespace pipewright::plan {
namespace {

constexpr int forward_time = 1;
constexpr int backward_time = 2;
constexpr int never = std::numeric_limits<int>::max();

/// Microbatches pass every stage in order, so counts suffice: for each stage the next forward and
/// the next backward, and when their microbatches arrive.
class ListScheduler {
 public:
  ListScheduler(const std::vector<int>& rank_of_stage, int microbatches, int in_flight)
      : rank_of_stage_(rank_of_stage),
        stages_(static_cast<int>(rank_of_stage.size())),
        in_flight_(in_flight),
        forwards_(rank_of_stage.size()),
        backwards_(rank_of_stage.size()) {
    const int ranks = *std::max_element(rank_of_stage.begin(), rank_of_stage.end()) + 1;
    schedule_.microbatches = microbatches;
    schedule_.ranks.resize(static_cast<std::size_t>(ranks));
    free_at_.resize(static_cast<std::size_t>(ranks), 0);
  }

  Schedule run() && {
    for (int now = 0; now != never; now = next_instant(now))
      for (int rank = 0; rank < static_cast<int>(free_at_.size()); ++rank)
        if (free_at_[index(rank)] <= now)
          if (const auto action = choose(rank, now))
            start(rank, *action, now);
    return std::move(schedule_);
  }

 private:
  /// When each microbatch left a stage, in order.
  using Ends = std::vector<int>;

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  /// Returns the earliest start of the stage's next forward.
  int forward_ready(int stage) const {
    const std::size_t m = forwards_[index(stage)].size();
    if (m == index(schedule_.microbatches))
      return never;
    const auto limit = index(std::min(in_flight_, stages_ - stage));
    if (m >= limit && backwards_[index(stage)].size() <= m - limit)
      return never;
    const int room = m < limit ? 0 : backwards_[index(stage)][m - limit];
    if (stage == 0)
      return room;
    const Ends& before = forwards_[index(stage) - 1];
    return m < before.size() ? std::max(room, before[m]) : never;
  }

  int backward_ready(int stage) const {
    const std::size_t m = backwards_[index(stage)].size();
    if (m >= forwards_[index(stage)].size())
      return never;
    if (stage + 1 == stages_)
      return forwards_[index(stage)][m];
    const Ends& after = backwards_[index(stage) + 1];
    return m < after.size() ? after[m] : never;
  }

  std::optional<Action> choose(int rank, int now) const {
    std::optional<Action> best;
    const auto consider = [&](ActionKind kind, int stage, std::size_t microbatch) {
      const auto m = static_cast<int>(microbatch);
      const bool backward_first = best && best->kind != kind && kind == ActionKind::Backward;
      const bool older = best && best->kind == kind && m <= best->microbatch;
      if (!best || backward_first || older)
        best = Action{kind, stage, m};
    };
    for (int stage = 0; stage < stages_; ++stage) {
      if (rank_of_stage_[index(stage)] != rank)
        continue;
      if (backward_ready(stage) <= now)
        consider(ActionKind::Backward, stage, backwards_[index(stage)].size());
      if (forward_ready(stage) <= now)
        consider(ActionKind::Forward, stage, forwards_[index(stage)].size());
    }
    return best;
  }

  void start(int rank, const Action& action, int now) {
    const bool forward = action.kind == ActionKind::Forward;
    const int end = now + (forward ? forward_time : backward_time);
    (forward ? forwards_ : backwards_)[index(action.stage)].push_back(end);
    free_at_[index(rank)] = end;
    schedule_.ranks[index(rank)].push_back(action);
  }

  /// Returns the next instant at which a rank becomes free or a microbatch arrives, or `never` at
  /// the end.
  int next_instant(int now) const {
    int next = never;
    for (int stage = 0; stage < stages_; ++stage) {
      const int free = free_at_[index(rank_of_stage_[index(stage)])];
      for (const int ready : {forward_ready(stage), backward_ready(stage)})
        if (ready != never)
          next = std::min(next, std::max({ready, free, now + 1}));
    }
    return next;
  }

  const std::vector<int>& rank_of_stage_;
  int stages_;
  int in_flight_;
  std::vector<Ends> forwards_;
  std::vector<Ends> backwards_;
  std::vector<int> free_at_;
  Schedule schedule_;
};

}  // namespace

Schedule list_schedule(const std::vector<int>& rank_of_stage, int microbatches, int in_flight) {
  return ListScheduler(rank_of_stage, microbatches, in_flight).run();
}

}  // namespace pipewright::plan
