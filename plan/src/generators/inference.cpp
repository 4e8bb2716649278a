#include "closed_forms.hpp"
#include "interleaved_order.hpp"
#include "on_placement.hpp"
#include "pipewright/plan/generators/generators.hpp"
#include "schedules/sizes.hpp"

namespace pipewright::plan {

Schedule make_inference(int ranks, int microbatches, int chunks) {
  check_sizes("inference", ranks, microbatches, chunks);
  Schedule schedule{.microbatches = microbatches, .ranks = {}};
  for (int rank = 0; rank < ranks; ++rank) {
    const InterleavedOrder order(rank, ranks, microbatches, chunks, ranks);
    auto& actions = schedule.ranks.emplace_back();
    for (int step = 0; step < order.count(); ++step)
      actions.push_back(order.forward(step));
  }
  return schedule;
}

ScheduleDescriptor schedule::inference() {
  return {.name = "inference",
          .chunks = Chunks::Any,
          .is_forward_only = true,
          .make = [](const ScheduleRequest& r) -> GeneratedSchedule {
            return {make_inference(r.ranks, r.microbatches, r.chunks)};
          },
          .make_on_placement =
              [](const std::vector<int>& rank_of_stage, int microbatches) {
                return stage_by_stage(rank_of_stage, microbatches, true);
              },
          .bubble = {"(P-1)F/V",
                     [](const ScheduleSizes& s) -> std::optional<double> {
                       if (s.microbatches % s.ranks != 0 && s.chunks > 1)
                         return {};
                       return (s.ranks - 1) * s.forward / s.chunks;
                     }},
          .activations = {"1/V", [](const ScheduleSizes& s) { return 1.0 / s.chunks; }}};
}

}  // namespace pipewright::plan
