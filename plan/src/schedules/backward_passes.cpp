#include "pipewright/plan/schedules/backward_passes.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

Schedule split_backwards(Schedule schedule) {
  for (auto& actions : schedule.ranks) {
    std::vector<Action> split;
    for (Action action : actions) {
      if (action.kind != ActionKind::Backward) {
        split.push_back(action);
        continue;
      }
      action.fused_with_next = false;
      // The halves of a backward from a fused pair are not fused with anything.
      if (!split.empty())
        split.back().fused_with_next = false;
      split.push_back({ActionKind::InputGradient, action.stage, action.microbatch});
      split.push_back({ActionKind::WeightGradient, action.stage, action.microbatch});
    }
    actions = std::move(split);
  }
  return schedule;
}

Schedule merge_backwards(Schedule schedule) {
  for (auto& actions : schedule.ranks) {
    std::vector<Action> merged;
    for (const Action& action : actions) {
      const bool completes = !merged.empty() && action.kind == ActionKind::WeightGradient &&
                             merged.back().kind == ActionKind::InputGradient &&
                             merged.back().stage == action.stage &&
                             merged.back().microbatch == action.microbatch;
      if (completes)
        merged.back().kind = ActionKind::Backward;
      else
        merged.push_back(action);
    }
    actions = std::move(merged);
  }
  return schedule;
}

Schedule oldest_weight_gradients_first(Schedule schedule) {
  for (auto& actions : schedule.ranks) {
    std::map<int, std::set<int>> owed;  // by stage: microbatches
    for (Action& action : actions) {
      if (action.kind == ActionKind::InputGradient)
        owed[action.stage].insert(action.microbatch);
      if (action.kind != ActionKind::WeightGradient)
        continue;
      auto& microbatches = owed[action.stage];
      if (!microbatches.empty())  // otherwise the schedule is invalid
        action.microbatch = microbatches.extract(microbatches.begin()).value();
    }
  }
  return schedule;
}

Schedule with_recompute(Schedule schedule, const std::vector<int>& stages) {
  const auto wanted = [&](int stage) {
    return stages.empty() || std::find(stages.begin(), stages.end(), stage) != stages.end();
  };
  for (auto& actions : schedule.ranks) {
    std::set<std::pair<int, int>> recomputed;  // (stage, microbatch)
    for (const Action& action : actions)
      if (action.kind == ActionKind::Recompute)
        recomputed.emplace(action.stage, action.microbatch);
    std::vector<Action> recomputing;
    for (const Action& action : actions) {
      const Action recompute{ActionKind::Recompute, action.stage, action.microbatch};
      const bool is_there = recomputed.contains({action.stage, action.microbatch});
      if (makes_input_gradient(action.kind) && wanted(action.stage) && !is_there) {
        if (!recomputing.empty())
          recomputing.back().fused_with_next = false;
        recomputing.push_back(recompute);
      }
      recomputing.push_back(action);
    }
    actions = std::move(recomputing);
  }
  return schedule;
}

}  // namespace pipewright::plan
