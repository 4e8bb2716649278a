#include "pipewright/plan/schedules.hpp"
#include "sizes.hpp"

namespace pipewright::plan {

Schedule make_gpipe(int ranks, int microbatches) {
  check_sizes("gpipe", ranks, microbatches);
  Schedule schedule{.microbatches = microbatches, .ranks = {}};
  for (int stage = 0; stage < ranks; ++stage) {
    std::vector<Action> actions;
    for (int m = 0; m < microbatches; ++m)
      actions.push_back({ActionKind::Forward, stage, m});
    for (int m = 0; m < microbatches; ++m)
      actions.push_back({ActionKind::Backward, stage, m});
    schedule.ranks.push_back(std::move(actions));
  }
  return schedule;
}

}  // namespace pipewright::plan
