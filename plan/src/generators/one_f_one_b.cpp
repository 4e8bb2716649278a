#include <algorithm>

#include "closed_forms.hpp"
#include "list_schedule.hpp"
#include "pipewright/plan/generators/generators.hpp"
#include "pipewright/plan/generators/round_robin.hpp"
#include "schedules/sizes.hpp"

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

ScheduleDescriptor schedule::one_f_one_b() {
  return {.name = "1f1b",
          .aliases = {"DAPPLE", "PipeDream-Flush", "non-interleaved"},
          .torch_class = "1F1B",
          .runs_in_megatron = true,
          .runs_in_deepspeed = true,
          .planned = Planned::ByDefault,
          .make = [](const ScheduleRequest& r) -> GeneratedSchedule {
            return {make_1f1b(r.ranks, r.microbatches)};
          },
          .make_on_placement =
              [](const std::vector<int>& rank_of_stage, int microbatches) {
                return list_schedule(rank_of_stage, microbatches,
                                     static_cast<int>(rank_of_stage.size()));
              },
          .make_with_copies = make_1f1b_rr,
          .bubble = flush_bubble(),
          .activations = one_f_one_b_activations()};
}

}  // namespace pipewright::plan
