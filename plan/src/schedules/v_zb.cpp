#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <queue>

#include "pipewright/plan/error.hpp"
#include "v_shape.hpp"

namespace pipewright::plan {
namespace {

/// A cell of the search: may a weight gradient delay a forward, or the input gradients of the last
/// leg, when that does not lengthen the longest rank?
struct Patience {
  bool delays_forwards;
  bool delays_last_leg;
};

/// The greedy construction of ZB-V: one wave after the other of one input gradient and one forward
/// on every rank; weight gradients fill what would be idle, or make room under the limit.
class Construction {
 public:
  Construction(int ranks, int microbatches, const VCosts& costs, int limit)
      : ranks_(ranks),
        microbatches_(microbatches),
        costs_(costs),
        limit_(limit),
        ends_(ranks, microbatches),
        states_(static_cast<std::size_t>(ranks)),
        schedule_{.microbatches = microbatches, .ranks = {}} {
    schedule_.ranks.resize(states_.size());
  }

  /// Nothing when the construction runs into the limit. `allowed` is the idle time of each rank in
  /// an earlier attempt: a rank that was better off then than the worst may idle as much more now.
  std::optional<Schedule> run(Patience patience, const std::vector<double>& allowed);

  /// The idle time of each rank between its first and its last action.
  std::vector<double> idle_times() const {
    std::vector<double> idle;
    for (const State& state : states_)
      idle.push_back(state.idle);
    return idle;
  }

 private:
  struct State {
    std::array<int, v_legs> done{};
    double free_at = 0;
    double idle = 0;
    int units = 0;
    std::queue<Action> owed;  // weight gradients, oldest first
  };
  State& state(int rank) { return states_[static_cast<std::size_t>(rank)]; }
  int& done(int leg, int rank) { return state(rank).done[static_cast<std::size_t>(leg)]; }

  bool can_start(int leg, int rank) {
    return ends_.can_start(hop_of_leg(leg, rank, ranks_), done(leg, rank));
  }

  bool warm_up();
  bool fill_the_way_back(int rank);
  bool level_with_rank_before();
  bool backward_wave();
  bool forward_wave();
  std::optional<int> leg_of_next_forward(int rank);

  bool put(int leg, int rank);
  bool put_after_weight_gradients(int leg, int rank, bool may_be_delayed);
  void put_weight_gradient(int rank);
  double idle_allowed(int rank);

  int ranks_;
  int microbatches_;
  VCosts costs_;
  int limit_;
  Patience patience_{};
  std::vector<double> allowed_;
  HopEnds ends_;
  std::vector<State> states_;
  Schedule schedule_;
};

bool Construction::put(int leg, int rank) {
  State& here = state(rank);
  const int m = done(leg, rank);
  if (m == microbatches_)
    return false;
  const int hop = hop_of_leg(leg, rank, ranks_);
  const Action action = action_of_hop(hop, m, ranks_);
  if (here.units + units_of(action.kind) > limit_ || !ends_.can_start(hop, m))
    return false;
  const double start = std::max(here.free_at, ends_.ready(hop, m, costs_.transfer));
  if (!schedule_.ranks[static_cast<std::size_t>(rank)].empty())
    here.idle += start - here.free_at;
  here.free_at = start + duration_of(action.kind, costs_);
  here.units += units_of(action.kind);
  ends_.set(hop, m, here.free_at);
  schedule_.ranks[static_cast<std::size_t>(rank)].push_back(action);
  if (action.kind == ActionKind::InputGradient)
    here.owed.push({ActionKind::WeightGradient, action.stage, m});
  ++done(leg, rank);
  return true;
}

void Construction::put_weight_gradient(int rank) {
  State& here = state(rank);
  schedule_.ranks[static_cast<std::size_t>(rank)].push_back(here.owed.front());
  here.owed.pop();
  here.free_at += costs_.weight_gradient;
  here.units += units_of(ActionKind::WeightGradient);
}

/// How much longer a rank may idle without becoming the worst.
double Construction::idle_allowed(int rank) {
  double worst = 0;
  for (const State& each : states_)
    worst = std::max(worst, each.idle);
  if (!allowed_.empty())
    worst = std::max(worst, *std::max_element(allowed_.begin(), allowed_.end()) -
                                allowed_[static_cast<std::size_t>(rank)]);
  return worst - state(rank).idle;
}

bool Construction::put_after_weight_gradients(int leg, int rank, bool may_be_delayed) {
  State& here = state(rank);
  const int hop = hop_of_leg(leg, rank, ranks_);
  while (here.units + (leg < 2 ? 2 : -1) > limit_ && !here.owed.empty())
    put_weight_gradient(rank);
  if (comes_from_another_rank(hop, ranks_) && can_start(leg, rank)) {
    const double ready = ends_.ready(hop, done(leg, rank), costs_.transfer);
    while (!here.owed.empty() && ready - here.free_at >= costs_.weight_gradient)
      put_weight_gradient(rank);
    if (!here.owed.empty() && may_be_delayed && ready - here.free_at > idle_allowed(rank))
      put_weight_gradient(rank);
  }
  return put(leg, rank);
}

/// While the first microbatch is on its way back to the rank, more start behind it.
bool Construction::fill_the_way_back(int rank) {
  const double back = ends_.ready(hop_of_leg(1, rank, ranks_), 0, costs_.transfer);
  while (state(rank).units + 2 * (2 + 2 * rank) <= limit_ &&
         state(rank).free_at + costs_.forward <= back && done(0, rank) < microbatches_)
    for (int r = 0; r <= rank; ++r)
      if (!put(0, r))
        return false;
  return true;
}

/// Forwards down and up in turn, until every rank has as many as the one before it.
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

/// The last leg where its gradient has come, from the last rank up; else the leg before it, down.
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
    if (!put_after_weight_gradients(2, rank, patience_.delays_last_leg))
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
      if (!put_after_weight_gradients(*leg, rank, patience_.delays_forwards))
        return false;
  return true;
}

std::optional<Schedule> Construction::run(Patience patience, const std::vector<double>& allowed) {
  patience_ = patience;
  allowed_ = allowed;
  if (!warm_up())
    return {};
  for (int wave = 0; wave < 2 * microbatches_; ++wave)
    if (!backward_wave() || !forward_wave())
      return {};
  for (int rank = 0; rank < ranks_; ++rank)
    while (!state(rank).owed.empty())
      put_weight_gradient(rank);
  return schedule_;
}

}  // namespace

Schedule make_v_zb(int ranks, int microbatches, const VCosts& costs,
                   std::optional<int> memory_units) {
  check_v_shape("v-zb", ranks, microbatches, costs);
  const int limit = memory_units.value_or(4 * ranks);
  if (limit < 4)
    throw InputError(fmt::format("v-zb: a limit of {} units asked for, the least is 4", limit));
  std::optional<Schedule> best;
  for (const bool delays_last_leg : {true, false})
    for (const bool delays_forwards : {true, false}) {
      std::vector<double> allowed;
      double worst = 1e300;
      for (;;) {
        Construction construction(ranks, microbatches, costs, limit);
        auto schedule = construction.run({delays_forwards, delays_last_leg}, allowed);
        if (!schedule)
          break;
        auto idle = construction.idle_times();
        double w = *std::max_element(idle.begin(), idle.end());
        if (w >= worst)
          break;
        worst = w;
        allowed = idle;
        if (!best || score_of(*schedule, costs).makespan < score_of(*best, costs).makespan)
          best = *schedule;
      }
    }
  if (!best)
    throw InputError("todo");
  return *best;
}

}  // namespace pipewright::plan
