#include "closed_forms.hpp"
#include "pipewright/plan/generators/generators.hpp"
#include "schedules/sizes.hpp"

namespace pipewright::plan {

Schedule make_looped_bfs(int ranks, int microbatches, int chunks) {
  check_sizes("looped-bfs", ranks, microbatches, chunks);
  Schedule schedule{.microbatches = microbatches, .ranks = {}};
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<Action> actions;
    for (int chunk = 0; chunk < chunks; ++chunk)
      for (int m = 0; m < microbatches; ++m)
        actions.push_back({ActionKind::Forward, chunk * ranks + rank, m});
    for (int chunk = chunks - 1; chunk >= 0; --chunk)
      for (int m = microbatches - 1; m >= 0; --m)
        actions.push_back({ActionKind::Backward, chunk * ranks + rank, m});
    schedule.ranks.push_back(std::move(actions));
  }
  return schedule;
}

ScheduleDescriptor schedule::looped_bfs() {
  return {.name = "looped-bfs",
          .aliases = {"breadth-first", "BFS"},
          .torch_class = "LoopedBFS",
          .chunks = Chunks::Any,
          .make = [](const ScheduleRequest& r) -> GeneratedSchedule {
            return {make_looped_bfs(r.ranks, r.microbatches, r.chunks)};
          },
          .bubble = looped_bubble(
              [](const ScheduleSizes& s) { return s.microbatches >= s.ranks || s.chunks == 1; }),
          .activations = {"M", [](const ScheduleSizes& s) { return s.microbatches; }}};
}

}  // namespace pipewright::plan
