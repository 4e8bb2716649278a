#include <fmt/format.h>

#include <algorithm>

#include "closed_forms.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/generators.hpp"
#include "schedules/sizes.hpp"

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
        fmt::format("pipedream-2bw: {} microbatches are not a multiple of the {} of a step: {}",
                    microbatches, batch, nearest_multiples(microbatches, batch, batch)));
  return make_1f1b(ranks, microbatches);
}

namespace {

/// Returns the smallest number of microbatches that suffices for two weight versions and divides
/// the total.
int batch_of(const ScheduleRequest& request) {
  const int least = std::max(request.ranks, 1);
  if (request.group != 0 || least >= request.microbatches)
    return request.group == 0 ? least : request.group;
  int found = request.microbatches;
  for (int small = 1; small <= request.microbatches / small; ++small)
    if (request.microbatches % small == 0)
      for (const int divisor : {small, request.microbatches / small})
        if (divisor >= least)
          found = std::min(found, divisor);
  return found;
}

}  // namespace

ScheduleDescriptor schedule::pipedream() {
  return {.name = "pipedream",
          .takes = "any sizes; steps after every backward: see `weight_versions`",
          .make = [](const ScheduleRequest& r) -> GeneratedSchedule {
            return {make_pipedream(r.ranks, r.microbatches)};
          },
          .step_every = [](const ScheduleRequest&) { return 1; },
          .bubble = flush_bubble("0 when steady; (P-1)(F+B) at the ends"),
          .activations = one_f_one_b_activations()};
}

ScheduleDescriptor schedule::pipedream_2bw() {
  return {.name = "pipedream-2bw",
          .takes = "`--group-size` N >= P that divides M: steps after every N backwards",
          .takes_group = true,
          .make = [](const ScheduleRequest& r) -> GeneratedSchedule {
            return {make_pipedream_2bw(r.ranks, r.microbatches, batch_of(r))};
          },
          .step_every = batch_of,
          .bubble = flush_bubble("0 when steady; (P-1)(F+B) at the ends"),
          .activations = one_f_one_b_activations()};
}

}  // namespace pipewright::plan
