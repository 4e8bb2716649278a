#include <fmt/format.h>

#include "closed_forms.hpp"
#include "dual_pipe_rank.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/generators.hpp"
#include "schedules/sizes.hpp"

namespace pipewright::plan {

Schedule make_dualpipev(int ranks, int microbatches) {
  check_sizes("dualpipev", ranks, microbatches, 2);
  if (microbatches < 2 * ranks)
    throw InputError(fmt::format(
        "dualpipev: {} microbatches are too few for {} ranks: at least twice as many are needed, "
        "{}",
        microbatches, ranks, 2 * ranks));
  Schedule schedule{.microbatches = microbatches, .ranks = {}};
  for (int rank = 0; rank < ranks; ++rank)
    schedule.ranks.push_back(
        dual_pipe_rank({rank, 0}, {2 * ranks - 1 - rank, 0}, rank, ranks, microbatches));
  return schedule;
}

ScheduleDescriptor schedule::dualpipev() {
  return {.name = "dualpipev",
          .torch_class = "DualPipeV",
          .planned = Planned::OnRequest,
          .chunks = Chunks::Two,
          .takes = "M >= 2P",
          .make = [](const ScheduleRequest& r) -> GeneratedSchedule {
            return {make_dualpipev(r.ranks, r.microbatches)};
          },
          .bubble = {"(P-1)(F&B+B-3W)/V",
                     [](const ScheduleSizes& s) { return dual_pipe_bubble(s, s.ranks, s.chunks); }},
          .activations = {"P + 1/2", [](const ScheduleSizes& s) { return s.ranks + 0.5; }}};
}

}  // namespace pipewright::plan
