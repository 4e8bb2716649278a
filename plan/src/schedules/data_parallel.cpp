#include "pipewright/plan/schedules.hpp"
#include "sizes.hpp"

namespace pipewright::plan {

Schedule make_data_parallel(int ranks, int microbatches) {
  check_sizes("data-parallel", ranks, microbatches);
  Schedule schedule{.microbatches = ranks * microbatches, .ranks = {}};
  for (int rank = 0; rank < ranks; ++rank) {
    auto& actions = schedule.ranks.emplace_back();
    for (int m = rank * microbatches; m < (rank + 1) * microbatches; ++m) {
      actions.push_back({ActionKind::Forward, 0, m});
      actions.push_back({ActionKind::Backward, 0, m});
    }
  }
  return schedule;
}

}  // namespace pipewright::plan
