#include "closed_forms.hpp"
#include "on_placement.hpp"
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
          .aliases = {"F-then-B", "AFAB"},
          .torch_class = "GPipe",
          .make = [](const ScheduleRequest& r) -> GeneratedSchedule {
            return {make_gpipe(r.ranks, r.microbatches)};
          },
          .make_on_placement =
              [](const std::vector<int>& rank_of_stage, int microbatches) {
                return stage_by_stage(rank_of_stage, microbatches, false);
              },
          .bubble = flush_bubble(),
          .activations = {"M", [](const ScheduleSizes& s) { return s.microbatches; }}};
}

}  // namespace pipewright::plan
