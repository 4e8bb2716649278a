#include "v_waves.hpp"

#include <algorithm>
#include <array>
#include <queue>

namespace pipewright::plan {
namespace {

class Construction {
 public:
  Construction(int ranks, int microbatches, const ScheduleCosts& costs, int limit,
               AllowedDelays delays, const std::vector<double>& earlier)
      : ranks_(ranks),
        microbatches_(microbatches),
        costs_(costs),
        limit_(limit),
        delays_(delays),
        earlier_(earlier),
        ends_(ranks, microbatches),
        states_(static_cast<std::size_t>(ranks)) {}

  std::optional<Waves> run();

 private:
  struct State {
    std::vector<Action> actions;
    std::queue<Action> owed;  // weight gradients, oldest first
    std::array<int, v_legs> done{};
    int units = 0;
    double free_at = 0;
    double idle = 0;
  };
  State& state(int rank) { return states_[static_cast<std::size_t>(rank)]; }
  int& done(int leg, int rank) { return state(rank).done[static_cast<std::size_t>(leg)]; }

  bool can_start(int leg, int rank) {
    return ends_.can_start(hop_of_leg(leg, rank, ranks_), done(leg, rank));
  }

  // Each of these returns false if the limit is too tight.
  bool warm_up();
  bool fill_the_way_back(int rank);
  bool level_with_rank_before();
  bool backward_wave();
  bool forward_wave();
  bool put(int leg, int rank);
  bool put_after_weight_gradients(int leg, int rank, bool may_be_delayed);

  std::optional<int> leg_of_next_forward(int rank);
  void put_weight_gradient(int rank);
  double idle_allowed(int rank);

  int ranks_;
  int microbatches_;
  ScheduleCosts costs_;
  int limit_;
  AllowedDelays delays_;
  const std::vector<double>& earlier_;
  HopEnds ends_;
  std::vector<State> states_;
};

bool Construction::put(int leg, int rank) {
  State& here = state(rank);
  const int m = done(leg, rank);
  if (m == microbatches_)
    return false;
  const int hop = hop_of_leg(leg, rank, ranks_);
  const Action action = action_of_hop(hop, m, ranks_);
  if (here.units + kept_by(action.kind).units > limit_ || !ends_.can_start(hop, m))
    return false;
  const double start = std::max(here.free_at, ends_.ready(hop, m, costs_.transfer));
  if (!here.actions.empty())
    here.idle += start - here.free_at;
  here.free_at = start + duration_of(action, costs_);
  here.units += kept_by(action.kind).units;
  ends_.set(hop, m, here.free_at);
  here.actions.push_back(action);
  if (action.kind == ActionKind::InputGradient)
    here.owed.push({ActionKind::WeightGradient, action.stage, m});
  ++done(leg, rank);
  return true;
}

void Construction::put_weight_gradient(int rank) {
  State& here = state(rank);
  here.actions.push_back(here.owed.front());
  here.owed.pop();
  here.free_at += duration_of(here.actions.back(), costs_);
  here.units += kept_by(ActionKind::WeightGradient).units;
}

/// Returns how much longer a rank may idle without becoming the one with the most idle time.
double Construction::idle_allowed(int rank) {
  double worst = 0;
  for (const State& each : states_)
    worst = std::max(worst, each.idle);
  if (!earlier_.empty())
    worst = std::max(worst, *std::max_element(earlier_.begin(), earlier_.end()) -
                                earlier_[static_cast<std::size_t>(rank)]);
  return worst - state(rank).idle;
}

bool Construction::put_after_weight_gradients(int leg, int rank, bool may_be_delayed) {
  State& here = state(rank);
  const int hop = hop_of_leg(leg, rank, ranks_);
  const int units = kept_by(action_of_hop(hop, 0, ranks_).kind).units;
  while (here.units + units > limit_ && !here.owed.empty())
    put_weight_gradient(rank);
  if (comes_from_another_rank(hop, ranks_) && can_start(leg, rank)) {
    const double ready = ends_.ready(hop, done(leg, rank), costs_.transfer);
    while (!here.owed.empty() && ready - here.free_at >= duration_of(here.owed.front(), costs_))
      put_weight_gradient(rank);
    if (!here.owed.empty() && may_be_delayed && ready - here.free_at > idle_allowed(rank))
      put_weight_gradient(rank);
  }
  return put(leg, rank);
}

/// Starts more microbatches while the first one is on its way back to the rank.
bool Construction::fill_the_way_back(int rank) {
  const double back = ends_.ready(hop_of_leg(1, rank, ranks_), 0, costs_.transfer);
  while (state(rank).units + 2 * (2 + 2 * rank) <= limit_ &&
         state(rank).free_at + costs_.of(rank).forward.value <= back &&
         done(0, rank) < microbatches_)
    for (int r = 0; r <= rank; ++r)
      if (!put(0, r))
        return false;
  return true;
}

/// Alternates forwards down and up until every rank has as many as the rank before it.
bool Construction::level_with_rank_before() {
  int leg = 0;
  for (int rank = 1; rank < ranks_; ++rank)
    while (done(0, rank) + done(1, rank) < done(0, rank - 1) + done(1, rank - 1) ||
           (done(1, rank) <= done(1, rank - 1) && done(1, rank - 1) < microbatches_)) {
      for (int r = ranks_ - 1; r >= rank; --r)
        if (done(leg, r) < microbatches_ && !put(leg, r))
          return false;
      leg = 1 - leg;
    }
  return true;
}

bool Construction::warm_up() {
  for (int rank = 0; rank < ranks_; ++rank)
    if (!put(0, rank))
      return false;
  for (int rank = ranks_ - 1; rank >= 0; --rank) {
    if (rank < ranks_ - 1 && !fill_the_way_back(rank))
      return false;
    if (!put(1, rank))
      return false;
  }
  return level_with_rank_before();
}

/// Runs the last leg, from the last rank up, on ranks where its gradient has arrived, and otherwise
/// the leg before it, down the ranks.
bool Construction::backward_wave() {
  std::vector<int> going_down;
  std::vector<int> going_up;
  for (int rank = 0; rank < ranks_; ++rank) {
    const bool turned =
        done(3, rank) < done(2, rank) && (can_start(3, rank) || done(2, rank) == microbatches_);
    (turned ? going_up : going_down).push_back(rank);
  }
  std::reverse(going_up.begin(), going_up.end());
  for (const int rank : going_up)
    if (!put_after_weight_gradients(3, rank, true))
      return false;
  for (const int rank : going_down)
    if (!put_after_weight_gradients(2, rank, delays_.of_way_down))
      return false;
  return true;
}

std::optional<int> Construction::leg_of_next_forward(int rank) {
  if (done(1, rank) == microbatches_)
    return {};
  if (done(1, rank) == done(0, rank))
    return 0;
  if (can_start(1, rank))
    return 1;
  if (done(0, rank) < microbatches_ && can_start(0, rank))
    return 0;
  return {};
}

bool Construction::forward_wave() {
  for (int rank = 0; rank < ranks_; ++rank)
    if (const auto leg = leg_of_next_forward(rank))
      if (!put_after_weight_gradients(*leg, rank, delays_.of_forwards))
        return false;
  return true;
}

std::optional<Waves> Construction::run() {
  if (!warm_up())
    return {};
  for (int wave = 0; wave < 2 * microbatches_; ++wave)
    if (!backward_wave() || !forward_wave())
      return {};
  Waves waves{.schedule = {.microbatches = microbatches_, .ranks = {}}, .idle = {}};
  for (int rank = 0; rank < ranks_; ++rank) {
    while (!state(rank).owed.empty())
      put_weight_gradient(rank);
    waves.schedule.ranks.push_back(std::move(state(rank).actions));
    waves.idle.push_back(state(rank).idle);
  }
  return waves;
}

}  // namespace

std::optional<Waves> construct_waves(int ranks, int microbatches, const ScheduleCosts& costs,
                                     int limit, AllowedDelays delays,
                                     const std::vector<double>& earlier) {
  return Construction(ranks, microbatches, costs, limit, delays, earlier).run();
}

}  // namespace pipewright::plan
