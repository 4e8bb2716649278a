#include <fmt/format.h>

#include "dual_pipe_rank.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/schedules.hpp"
#include "sizes.hpp"

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

}  // namespace pipewright::plan
