#include "closed_forms.hpp"
#include "pipewright/plan/generators/generators.hpp"
#include "schedules/sizes.hpp"

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

ScheduleDescriptor schedule::gpipe() {
  return {.name = "gpipe",
          .takes_placement = true,
          .make = [](const ScheduleRequest& r) -> MadeSchedule {
            return {make_gpipe(r.ranks, r.microbatches)};
          },
          .bubble = flush_bubble(),
          .activations = {"M", [](const ScheduleSizes& s) { return s.microbatches; }}};
}

}  // namespace pipewright::plan
