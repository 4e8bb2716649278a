#include "pipewright/plan/schedules/validate_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/schedules/placement_of.hpp"
#include "pipewright/plan/schedules/schedule.hpp"
#include "schedules/waiting.hpp"

namespace pipewright::plan {
namespace {

/// The progress of a microbatch on a stage.
struct Progress {
  int forwards = 0;
  int input_gradients = 0;   // by I or B
  int weight_gradients = 0;  // by W or B
  bool split = false;        // true if its backward is split into I and W
};

/// Validates one schedule and collects its errors.
class ScheduleChecker {
 public:
  explicit ScheduleChecker(const Schedule& schedule)
      : schedule_(schedule),
        stages_(stage_count(schedule)),
        forward_only_(is_forward_only(schedule)),
        placement_(placement_of(schedule)) {}

  std::vector<std::string> run() {
    check_placement();
    if (errors_.empty())
      check_counts();
    if (errors_.empty())
      check_fused_pairs();
    if (errors_.empty())
      check_progress();
    return std::move(errors_);
  }

 private:
  Progress& at(int stage, int microbatch) {
    return progress_[static_cast<std::size_t>(stage) *
                         static_cast<std::size_t>(schedule_.microbatches) +
                     static_cast<std::size_t>(microbatch)];
  }

  void check_placement() {
    const auto& known = placement_.routes.front();
    for (int stage = 0; stage < stages_; ++stage)
      if (known[static_cast<std::size_t>(stage)] < 0)
        errors_.push_back(fmt::format("stage {} is on no rank", stage));
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank)
      for (const Action& action : schedule_.ranks[rank]) {
        const int owner = placement_.rank_of(action.stage, action.microbatch);
        if (owner != static_cast<int>(rank))
          errors_.push_back(
              fmt::format("rank {}, action {}: microbatch {} of stage {} is on rank "
                          "{} as well",
                          rank, to_string(action), action.microbatch, action.stage, owner));
        if (action.microbatch >= schedule_.microbatches)
          errors_.push_back(fmt::format("rank {}, action {}: there are {} microbatches only", rank,
                                        to_string(action), schedule_.microbatches));
      }
    progress_.resize(static_cast<std::size_t>(stages_) *
                     static_cast<std::size_t>(std::max(schedule_.microbatches, 0)));
  }

  void check_counts() {
    for (const auto& actions : schedule_.ranks)
      for (const Action& action : actions)
        perform(action);
    for (int stage = 0; stage < stages_; ++stage)
      for (int m = 0; m < schedule_.microbatches; ++m)
        check_count(stage, m, at(stage, m));
    for (Progress& progress : progress_)
      progress = {.split = progress.split};
  }

  void check_count(int stage, int microbatch, const Progress& seen) {
    const int rank = placement_.rank_of(stage, microbatch);
    const auto once = [&](char letter, int count, const char* what) {
      errors_.push_back(
          fmt::format("rank {}, action {}{}{}: the {} occurs {} times instead of once", rank, stage,
                      letter, microbatch, what, count));
    };
    if (seen.forwards != 1)
      once('F', seen.forwards, "forward");
    if (forward_only_ || (seen.input_gradients == 1 && seen.weight_gradients == 1))
      return;
    if (seen.input_gradients == 0 && seen.weight_gradients == 0)
      once('B', 0, "backward");
    else
      errors_.push_back(
          fmt::format("rank {}: stage {}, microbatch {}: {} input gradients and {} weight "
                      "gradients, one of each is needed (B counts as both)",
                      rank, stage, microbatch, seen.input_gradients, seen.weight_gradients));
  }

  /// Checks fused pairs. The second action starts with the first, so it cannot depend on it.
  void check_fused_pairs() {
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      const auto& actions = schedule_.ranks[rank];
      for (std::size_t i = 0; i < actions.size(); ++i) {
        if (!actions[i].fused_with_next)
          continue;
        if (i + 1 == actions.size() || actions[i + 1].fused_with_next)
          errors_.push_back(fmt::format("rank {}, action {}: a fused pair has two actions", rank,
                                        to_string(actions[i])));
        else if (actions[i].microbatch == actions[i + 1].microbatch)
          errors_.push_back(fmt::format(
              "rank {}, actions {} and {}: a fused pair needs two microbatches, or one of its "
              "actions waits for the other",
              rank, to_string(actions[i]), to_string(actions[i + 1])));
      }
    }
  }

  /// Returns what the action still waits for, or nothing if it may run.
  std::optional<Action> obstacle(const Action& action) {
    const auto stage = action.stage, m = action.microbatch;
    const Progress& own = at(stage, m);
    switch (action.kind) {
      case ActionKind::Forward:
        if (stage > 0 && at(stage - 1, m).forwards == 0)
          return Action{ActionKind::Forward, stage - 1, m};
        return {};
      case ActionKind::Backward:
      case ActionKind::InputGradient:
        if (own.forwards == 0)
          return Action{ActionKind::Forward, stage, m};
        if (stage + 1 < stages_ && at(stage + 1, m).input_gradients == 0)
          return Action{at(stage + 1, m).split ? ActionKind::InputGradient : ActionKind::Backward,
                        stage + 1, m};
        return {};
      case ActionKind::WeightGradient:
        if (own.input_gradients == 0)
          return Action{ActionKind::InputGradient, stage, m};
        return {};
      case ActionKind::Recompute:
        if (own.forwards == 0)
          return Action{ActionKind::Forward, stage, m};
        return {};
    }
    return {};
  }

  void perform(const Action& action) {
    Progress& now = at(action.stage, action.microbatch);
    now.forwards += action.kind == ActionKind::Forward;
    now.input_gradients += makes_input_gradient(action.kind);
    now.weight_gradients += makes_weight_gradient(action.kind);
    now.split = now.split || action.kind == ActionKind::InputGradient;
  }

  /// Returns true if the action may start. The two actions of a fused pair start together.
  bool may_start(const std::vector<Action>& actions, std::size_t next) {
    return !obstacle(actions[next]) &&
           (!actions[next].fused_with_next || !obstacle(actions[next + 1]));
  }

  void check_progress() {
    std::vector<std::size_t> next(schedule_.ranks.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < next.size(); ++rank) {
        const auto& actions = schedule_.ranks[rank];
        while (next[rank] < actions.size() && may_start(actions, next[rank])) {
          perform(actions[next[rank]]);
          if (actions[next[rank]].fused_with_next)
            perform(actions[++next[rank]]);
          ++next[rank];
          moved = true;
        }
      }
    }
    name_cycle(next);
  }

  /// Names a deadlock. Every rank that is not at its end waits for an action that is further back
  /// in the list of some rank.
  void name_cycle(const std::vector<std::size_t>& next) {
    std::vector<Waiting> stuck;
    for (std::size_t rank = 0; rank < next.size(); ++rank) {
      const auto& actions = schedule_.ranks[rank];
      if (next[rank] == actions.size())
        continue;
      auto missing = obstacle(actions[next[rank]]);
      if (!missing)  // the action is fused, and its partner waits
        missing = obstacle(actions[next[rank] + 1]);
      stuck.push_back({.place = static_cast<int>(rank),
                       .rank = static_cast<int>(rank),
                       .action = to_string(actions[next[rank]]),
                       .needs = to_string(*missing),
                       .behind = placement_.rank_of(missing->stage, missing->microbatch)});
    }
    if (!stuck.empty())
      errors_.push_back(in_words(shortest_cycle(stuck)));
  }

  const Schedule& schedule_;
  const int stages_;
  const bool forward_only_;
  const Placement placement_;
  std::vector<Progress> progress_;
  std::vector<std::string> errors_;
};

}  // namespace

void validate(const Schedule& schedule) {
  const auto errors = ScheduleChecker(schedule).run();
  if (!errors.empty())
    throw InputError(listed_lines(errors));
}

}  // namespace pipewright::plan
