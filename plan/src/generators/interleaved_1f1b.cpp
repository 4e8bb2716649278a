#include <fmt/format.h>

#include <algorithm>

#include "closed_forms.hpp"
#include "interleaved_order.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/generators.hpp"
#include "schedules/sizes.hpp"

namespace pipewright::plan {
namespace {

Schedule interleaved(int ranks, int microbatches, int chunks, int group, int warm_up_per_hop) {
  Schedule schedule{.microbatches = microbatches, .ranks = {}};
  for (int rank = 0; rank < ranks; ++rank) {
    const InterleavedOrder order(rank, ranks, microbatches, chunks, group);
    const int warm_up =
        std::min(order.count(), (chunks - 1) * group + warm_up_per_hop * (ranks - 1 - rank));
    std::vector<Action> actions;
    actions.reserve(2 * static_cast<std::size_t>(order.count()));
    for (int step = 0; step < warm_up; ++step)
      actions.push_back(order.forward(step));
    // Steady: one forward, one backward.
    for (int step = warm_up; step < order.count(); ++step) {
      actions.push_back(order.forward(step));
      actions.push_back(order.backward(step - warm_up, ActionKind::Backward));
    }
    // Cool-down: the backwards still owed from warm-up.
    for (int step = order.count() - warm_up; step < order.count(); ++step)
      actions.push_back(order.backward(step, ActionKind::Backward));
    schedule.ranks.push_back(std::move(actions));
  }
  return schedule;
}

/// Checks that every round, also the last one, has at least as many microbatches as there are
/// ranks. A single round of all microbatches is always possible.
void check_group(int ranks, int microbatches, int group) {
  if (microbatches < ranks)
    throw InputError(
        fmt::format("megatron-interleaved: {} microbatches asked for, but {} ranks need at least "
                    "as many: {}",
                    microbatches, ranks, ranks));
  const auto fits = [&](int g) {
    return g >= ranks && g <= microbatches && (microbatches % g == 0 || microbatches % g >= ranks);
  };
  if (fits(group))
    return;
  int below = std::min(group, microbatches), above = std::max(group, ranks);
  while (below > ranks && !fits(below))
    --below;
  while (above < microbatches && !fits(above))
    ++above;
  const std::string nearest = !fits(below)   ? fmt::format("{}", above)
                              : !fits(above) ? fmt::format("{}", below)
                                             : fmt::format("{} or {}", below, above);
  if (group < ranks || group > microbatches)
    throw InputError(fmt::format(
        "megatron-interleaved: groups of {} microbatches asked for; a group has at least as many "
        "as there are ranks and at most as many as there are microbatches: {}",
        group, nearest));
  throw InputError(fmt::format(
      "megatron-interleaved: {} microbatches in groups of {} leave a last group of {}, less than "
      "the {} ranks: the nearest group that fits is {}",
      microbatches, group, microbatches % group, ranks, nearest));
}

}  // namespace

Schedule make_interleaved_1f1b(int ranks, int microbatches, int chunks) {
  check_sizes("interleaved-1f1b", ranks, microbatches, chunks);
  const int group = round_size("interleaved-1f1b", ranks, microbatches);
  return interleaved(ranks, microbatches, chunks, group, 2);
}

Schedule make_megatron_interleaved(int ranks, int microbatches, int chunks, int group) {
  check_sizes("megatron-interleaved", ranks, microbatches, chunks);
  if (chunks == 1)
    return make_1f1b(ranks, microbatches);
  check_group(ranks, microbatches, group == 0 ? ranks : group);
  return interleaved(ranks, microbatches, chunks, group == 0 ? ranks : group, 2);
}

namespace {

bool divides(const ScheduleSizes& s) { return s.microbatches % s.ranks == 0; }

}  // namespace

ScheduleDescriptor schedule::interleaved_1f1b() {
  return {.name = "interleaved-1f1b",
          .aliases = {"1F1B-I", "1F1B-interleaved", "interleaved", "VPP"},
          .torch_class = "Interleaved1F1B",
          .runs_in_megatron = true,
          .planned = Planned::ByDefault,
          .chunks = Chunks::Any,
          .takes = "M a multiple of max(1, M div P)",
          .make = [](const ScheduleRequest& r) -> GeneratedSchedule {
            return {make_interleaved_1f1b(r.ranks, r.microbatches, r.chunks)};
          },
          .bubble = looped_bubble(divides),
          .activations = looped_activations()};
}

ScheduleDescriptor schedule::megatron_interleaved() {
  return {.name = "megatron-interleaved",
          .runs_in_megatron = true,
          .chunks = Chunks::Any,
          .takes = "`--group-size` N, P <= N <= M, the last round none or at least P microbatches",
          .takes_group = true,
          .make = [](const ScheduleRequest& r) -> GeneratedSchedule {
            return {make_megatron_interleaved(r.ranks, r.microbatches, r.chunks, r.group)};
          },
          .bubble = looped_bubble(divides),
          .activations = {"P + (P-1)/V", [](const ScheduleSizes& s) -> std::optional<double> {
                            if (s.chunks == 1)
                              return std::min(s.microbatches, s.ranks);
                            return looped_activations().value(s);
                          }}};
}

}  // namespace pipewright::plan
