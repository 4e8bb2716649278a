#include "v_greedy.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <queue>

namespace pipewright::plan {
namespace {

class Greedy {
 public:
  Greedy(int ranks, int microbatches, const ScheduleCosts& costs, const std::vector<Kept>& limits,
         double patience)
      : ranks_(ranks),
        microbatches_(microbatches),
        costs_(costs),
        patience_(patience),
        ends_(ranks, microbatches) {
    schedule_.microbatches = microbatches;
    schedule_.ranks.resize(limits.size());
    for (const Kept& limit : limits)
      states_.push_back({.limit = limit});
    for (int rank = 0; rank < ranks; ++rank)
      choices_.push_back(choice_of(rank));
  }

  Schedule run() {
    while (step()) {
    }
    return schedule_;
  }

 private:
  struct State {
    Kept limit;
    Kept kept{};
    std::array<int, v_legs> done{};
    double free_at = 0;
    std::queue<Action> owed{};  // weight gradients, oldest first
  };
  struct Choice {
    Action action{};
    double start = std::numeric_limits<double>::infinity();
  };

  bool fits(const State& state, int leg) const;
  Choice first_hop(int rank) const;
  Choice choice_of(int rank) const;
  void run(int rank, const Choice& choice);
  void choose(int rank) { choices_[static_cast<std::size_t>(rank)] = choice_of(rank); }
  bool step();

  int ranks_;
  int microbatches_;
  ScheduleCosts costs_;
  double patience_;
  HopEnds ends_;
  std::vector<State> states_;
  std::vector<Choice> choices_;  // by rank: the best choice in the current state
  Schedule schedule_;
};

/// Returns true if the next microbatch of a leg fits, such that the oldest microbatch on the rank
/// can still come back up. The oldest microbatch of all can then always proceed, so no limit leads
/// to a deadlock.
bool Greedy::fits(const State& state, int leg) const {
  if (leg >= 2)
    return true;
  const Kept forward = kept_by(ActionKind::Forward);
  const bool oldest_must_come_back = leg == 0 && state.done[1] == state.done[3];
  return (state.kept + forward + (oldest_must_come_back ? forward : Kept{})).fits(state.limit);
}

/// Returns the hop that can start first. Among equal hops, one that leads back to the first rank is
/// preferred.
Greedy::Choice Greedy::first_hop(int rank) const {
  const State& state = states_[static_cast<std::size_t>(rank)];
  Choice first;
  for (const int leg : {3, 1, 2, 0}) {
    const int m = state.done[static_cast<std::size_t>(leg)];
    const int hop = hop_of_leg(leg, rank, ranks_);
    if (m == microbatches_ || !ends_.can_start(hop, m) || !fits(state, leg))
      continue;
    const double start = std::max(state.free_at, ends_.ready(hop, m, costs_.transfer));
    if (start < first.start)
      first = {action_of_hop(hop, m, ranks_), start};
  }
  return first;
}

Greedy::Choice Greedy::choice_of(int rank) const {
  const State& state = states_[static_cast<std::size_t>(rank)];
  const Choice hop = first_hop(rank);
  if (!state.owed.empty() &&
      hop.start >= state.free_at + patience_ * duration_of(state.owed.front(), costs_))
    return {state.owed.front(), state.free_at};
  return hop;
}

void Greedy::run(int rank, const Choice& choice) {
  State& state = states_[static_cast<std::size_t>(rank)];
  const Action& action = choice.action;
  const int hop = hop_of(action, ranks_);
  state.free_at = choice.start + duration_of(action, costs_);
  state.kept += kept_by(action.kind);
  schedule_.ranks[static_cast<std::size_t>(rank)].push_back(action);
  if (action.kind == ActionKind::WeightGradient) {
    state.owed.pop();
    return;
  }
  ends_.set(hop, action.microbatch, state.free_at);
  ++state.done[static_cast<std::size_t>(hop / ranks_)];
  if (action.kind == ActionKind::InputGradient)
    state.owed.push({ActionKind::WeightGradient, action.stage, action.microbatch});
}

/// Runs the choice that starts first of all ranks, so that no later choice could have preceded it.
bool Greedy::step() {
  const auto first =
      std::min_element(choices_.begin(), choices_.end(),
                       [](const Choice& a, const Choice& b) { return a.start < b.start; });
  if (first->start == std::numeric_limits<double>::infinity())
    return false;
  const auto rank = static_cast<int>(first - choices_.begin());
  const Action ran = first->action;
  run(rank, *first);
  choose(rank);
  if (const int next = hop_of(ran, ranks_) + 1;
      ran.kind != ActionKind::WeightGradient && next < v_legs * ranks_)
    choose(rank_of_hop(next, ranks_));
  return true;
}

}  // namespace

Schedule greedy_v(int ranks, int microbatches, const ScheduleCosts& costs,
                  const std::vector<Kept>& limits, double patience) {
  return Greedy(ranks, microbatches, costs, limits, patience).run();
}

}  // namespace pipewright::plan
