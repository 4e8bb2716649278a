#include <fmt/format.h>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/schedules.hpp"
#include "sizes.hpp"

namespace pipewright::plan {

Schedule make_pipedream(int ranks, int microbatches) {
  check_sizes("pipedream", ranks, microbatches);
  return make_1f1b(ranks, microbatches);
}

Schedule make_pipedream_2bw(int ranks, int microbatches, int batch) {
  check_sizes("pipedream-2bw", ranks, microbatches);
  if (batch < ranks) {
    int least = ranks;
    while (least < microbatches && microbatches % least != 0)
      ++least;
    throw InputError(fmt::format(
        "pipedream-2bw: a step every {} microbatches asked for, but two weight versions suffice "
        "only with at least as many as ranks: {}",
        batch, least));
  }
  if (microbatches % batch != 0)
    throw InputError(
        fmt::format("pipedream-2bw: {} microbatches are no multiple of the {} of a step: {}",
                    microbatches, batch, nearest_multiples(microbatches, batch, batch)));
  return make_1f1b(ranks, microbatches);
}

}  // namespace pipewright::plan
