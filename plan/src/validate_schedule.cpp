#include <fmt/format.h>

#include <algorithm>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/schedule.hpp"

namespace pipewright::plan {
namespace {

/// How far one microbatch has come on one stage.
struct Progress {
  int forwards = 0;
  int input_gradients = 0;   // by I or B
  int weight_gradients = 0;  // by W or B
};

/// Checks one schedule; `errors` says in words what is wrong.
class Checker {
 public:
  explicit Checker(const Schedule& schedule)
      : schedule_(schedule), stages_(stage_count(schedule)), owner_(rank_of_stage(schedule)) {}

  std::vector<std::string> run() {
    check_size();
    if (errors_.empty())
      check_placement();
    if (errors_.empty())
      check_counts();
    if (errors_.empty())
      check_progress();
    return errors_;
  }

 private:
  Progress& at(int stage, int microbatch) {
    return progress_[static_cast<std::size_t>(stage) *
                         static_cast<std::size_t>(schedule_.microbatches) +
                     static_cast<std::size_t>(microbatch)];
  }

  /// A mistyped stage or microbatch of many digits would otherwise list as many missing actions.
  void check_size() {
    const std::size_t places = static_cast<std::size_t>(stages_) *
                               static_cast<std::size_t>(std::max(schedule_.microbatches, 0));
    std::size_t actions = 0;
    for (const auto& list : schedule_.ranks)
      actions += list.size();
    if (places > 100'000 && actions < 2 * places)
      errors_.push_back(
          fmt::format("{} stages and {} microbatches need {} actions at least, but there are {}",
                      stages_, schedule_.microbatches, 2 * places, actions));
    else
      progress_.resize(places);
  }

  void check_placement() {
    for (int stage = 0; stage < stages_; ++stage)
      if (owner_[static_cast<std::size_t>(stage)] < 0)
        errors_.push_back(fmt::format("stage {} is on no rank", stage));
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank)
      for (const Action& action : schedule_.ranks[rank]) {
        const int owner = owner_[static_cast<std::size_t>(action.stage)];
        if (owner != static_cast<int>(rank))
          errors_.push_back(fmt::format("rank {}, action {}: stage {} is on rank {} as well", rank,
                                        to_string(action), action.stage, owner));
        if (action.microbatch >= schedule_.microbatches)
          errors_.push_back(fmt::format("rank {}, action {}: there are {} microbatches only", rank,
                                        to_string(action), schedule_.microbatches));
      }
  }

  void check_counts() {
    for (const auto& actions : schedule_.ranks)
      for (const Action& action : actions) {
        Progress& seen = at(action.stage, action.microbatch);
        const ActionKind kind = action.kind;
        seen.forwards += kind == ActionKind::Forward;
        seen.input_gradients += kind == ActionKind::InputGradient || kind == ActionKind::Backward;
        seen.weight_gradients += kind == ActionKind::WeightGradient || kind == ActionKind::Backward;
      }
    for (int stage = 0; stage < stages_; ++stage)
      for (int m = 0; m < schedule_.microbatches; ++m) {
        const Progress seen = at(stage, m);
        check_count(stage, 'F', m, seen.forwards, "forward");
        if (seen.input_gradients == 1 && seen.weight_gradients == 1)
          continue;
        if (seen.input_gradients == 0 && seen.weight_gradients == 0)
          check_count(stage, 'B', m, 0, "backward");
        else
          errors_.push_back(
              fmt::format("rank {}: stage {}, microbatch {}: {} input gradients and {} weight "
                          "gradients, one of "
                          "each is needed (B counts as both)",
                          owner_[static_cast<std::size_t>(stage)], stage, m, seen.input_gradients,
                          seen.weight_gradients));
      }
    std::fill(progress_.begin(), progress_.end(), Progress{});
  }

  void check_count(int stage, char letter, int microbatch, int count, const char* what) {
    if (count == 1)
      return;
    errors_.push_back(fmt::format("rank {}, action {}{}{}: the {} stands {} times, once is needed",
                                  owner_[static_cast<std::size_t>(stage)], stage, letter,
                                  microbatch, what, count));
  }

  /// What the action still waits for, in words; empty when it may run.
  std::string obstacle(const Action& action) {
    const auto [kind, stage, m] = action;
    switch (kind) {
      case ActionKind::Forward:
        if (stage > 0 && at(stage - 1, m).forwards == 0)
          return fmt::format("{}F{}", stage - 1, m);
        return "";
      case ActionKind::Backward:
      case ActionKind::InputGradient:
        if (at(stage, m).forwards == 0)
          return fmt::format("{}F{}", stage, m);
        if (stage + 1 < stages_ && at(stage + 1, m).input_gradients == 0)
          return fmt::format("the input gradient of {}F{}", stage + 1, m);
        return "";
      case ActionKind::WeightGradient:
        return at(stage, m).input_gradients > 0 ? "" : fmt::format("{}I{}", stage, m);
      case ActionKind::Recompute:
        return at(stage, m).forwards > 0 ? "" : fmt::format("{}F{}", stage, m);
    }
    return "";
  }

  void perform(const Action& action) {
    Progress& now = at(action.stage, action.microbatch);
    const ActionKind kind = action.kind;
    now.forwards += kind == ActionKind::Forward;
    now.input_gradients += kind == ActionKind::InputGradient || kind == ActionKind::Backward;
    now.weight_gradients += kind == ActionKind::WeightGradient || kind == ActionKind::Backward;
  }

  void check_progress() {
    std::vector<std::size_t> next(schedule_.ranks.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < next.size(); ++rank) {
        const auto& actions = schedule_.ranks[rank];
        while (next[rank] < actions.size() && obstacle(actions[next[rank]]).empty()) {
          perform(actions[next[rank]++]);
          moved = true;
        }
      }
    }
    for (std::size_t rank = 0; rank < next.size(); ++rank) {
      if (next[rank] == schedule_.ranks[rank].size())
        continue;
      const Action& stuck = schedule_.ranks[rank][next[rank]];
      errors_.push_back(fmt::format("rank {}, action {}: waits for ever for {}", rank,
                                    to_string(stuck), obstacle(stuck)));
    }
  }

  const Schedule& schedule_;
  const int stages_;
  const std::vector<int> owner_;
  std::vector<Progress> progress_;
  std::vector<std::string> errors_;
};

}  // namespace

void validate(const Schedule& schedule) {
  const auto errors = Checker(schedule).run();
  if (!errors.empty())
    throw InputError(fmt::format("{}", fmt::join(errors, "\n")));
}

}  // namespace pipewright::plan
