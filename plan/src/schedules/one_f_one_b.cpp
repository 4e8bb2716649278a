#include <algorithm>

#include "pipewright/plan/schedules.hpp"
#include "sizes.hpp"

namespace pipewright::plan {

Schedule make_1f1b(int ranks, int microbatches) {
  check_sizes("1f1b", ranks, microbatches);
  Schedule schedule{.microbatches = microbatches, .ranks = {}};
  for (int stage = 0; stage < ranks; ++stage) {
    const int warm_up = std::min(ranks - stage - 1, microbatches);
    std::vector<Action> actions;
    for (int m = 0; m < warm_up; ++m)
      actions.push_back({ActionKind::Forward, stage, m});

    // Steady: one forward, then the oldest backward that is ready.
    for (int m = warm_up; m < microbatches; ++m) {
      actions.push_back({ActionKind::Forward, stage, m});
      actions.push_back({ActionKind::Backward, stage, m - warm_up});
    }
    // Cool-down: the backwards still owed from warm-up.
    for (int m = microbatches - warm_up; m < microbatches; ++m)
      actions.push_back({ActionKind::Backward, stage, m});

    schedule.ranks.push_back(std::move(actions));
  }
  return schedule;
}

}  // namespace pipewright::plan
