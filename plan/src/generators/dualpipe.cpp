#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "closed_forms.hpp"
#include "dual_pipe_rank.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/generators.hpp"
#include "schedules/sizes.hpp"

namespace pipewright::plan {

Schedule make_dualpipe(int ranks, int microbatches) {
  check_sizes("dualpipe", ranks, microbatches, 2);
  if (ranks % 2 != 0)
    throw InputError(fmt::format("dualpipe: {} ranks asked for, but it needs an even number: {}",
                                 ranks, nearest_multiples(ranks, 2, 2)));
  if (microbatches % 2 != 0 || microbatches < 2 * ranks)
    throw InputError(fmt::format(
        "dualpipe: {} microbatches asked for, but {} ranks need an even number of at least {}: {}",
        microbatches, ranks, 2 * ranks, nearest_multiples(microbatches, 2, 2 * ranks)));
  Schedule schedule{.microbatches = microbatches, .ranks = {}};
  for (int rank = 0; rank < ranks; ++rank) {
    DualPipeSide near{rank, 0}, far{ranks - 1 - rank, microbatches / 2};
    if (rank >= ranks / 2)
      std::swap(near, far);
    const int hop = std::min(rank, ranks - 1 - rank);
    schedule.ranks.push_back(dual_pipe_rank(near, far, hop, ranks / 2, microbatches / 2));
  }
  return schedule;
}

ScheduleDescriptor schedule::dualpipe() {
  return {.name = "dualpipe",
          .takes = "even P and M, M >= 2P; every rank holds two stages' parameters",
          .make = [](const ScheduleRequest& r) -> GeneratedSchedule {
            return {make_dualpipe(r.ranks, r.microbatches)};
          },
          .bubble = {"(P/2-1)(F&B+B-3W)",
                     [](const ScheduleSizes& s) { return dual_pipe_bubble(s, s.ranks / 2, 1); }},
          .activations = {"P+1", [](const ScheduleSizes& s) { return s.ranks + 1; }}};
}

}  // namespace pipewright::plan
