#include <algorithm>

#include "closed_forms.hpp"
#include "interleaved_order.hpp"
#include "pipewright/plan/generators/generators.hpp"
#include "schedules/sizes.hpp"

namespace pipewright::plan {

Schedule make_interleaved_zb(int ranks, int microbatches, int chunks) {
  check_sizes("interleaved-zb", ranks, microbatches, chunks);
  const int round = round_size("interleaved-zb", ranks, microbatches);
  Schedule schedule{.microbatches = microbatches, .ranks = {}};
  for (int rank = 0; rank < ranks; ++rank) {
    const InterleavedOrder order(rank, ranks, microbatches, chunks, round);
    const int warm_up = std::min(order.count(), (chunks - 1) * round + ranks - 1 - rank);
    std::vector<Action> actions;
    actions.reserve(3 * static_cast<std::size_t>(order.count()));
    for (int step = 0; step < warm_up; ++step)
      actions.push_back(order.forward(step));

    // Each input gradient is followed by the weight gradient of `rank` steps before.
    int weights = 0;
    for (int step = 0; step < order.count(); ++step) {
      if (step + warm_up < order.count())
        actions.push_back(order.forward(step + warm_up));
      actions.push_back(order.backward(step, ActionKind::InputGradient));
      if (step >= rank)
        actions.push_back(order.backward(weights++, ActionKind::WeightGradient));
    }
    while (weights < order.count())
      actions.push_back(order.backward(weights++, ActionKind::WeightGradient));
    schedule.ranks.push_back(std::move(actions));
  }
  return schedule;
}

ScheduleDescriptor schedule::interleaved_zb() {
  return {.name = "interleaved-zb",
          .torch_class = "InterleavedZeroBubble",
          .chunks = Chunks::Any,
          .takes = "M a multiple of max(1, M div P)",
          .make = [](const ScheduleRequest& r) -> GeneratedSchedule {
            return {make_interleaved_zb(r.ranks, r.microbatches, r.chunks)};
          },
          .bubble = {"(P-1)(F+B)/(3V)",
                     [](const ScheduleSizes& s) -> std::optional<double> {
                       if (!s.equal_times() || s.microbatches % s.ranks != 0)
                         return {};
                       return (s.ranks - 1) * (s.forward + s.backward()) / (3 * s.chunks);
                     }},
          .activations = {"P", [](const ScheduleSizes& s) -> std::optional<double> {
                            if (s.microbatches % s.ranks != 0)
                              return {};
                            return s.ranks;
                          }}};
}

}  // namespace pipewright::plan
