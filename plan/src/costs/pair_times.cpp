#include "pipewright/plan/costs/pair_times.hpp"

#include <algorithm>

namespace pipewright::plan {

Seconds shards_of(Work work, const StageCost& cost) {
  const bool is_forward = work == Work::Forward || work == Work::Rerun;
  const bool is_backward = work == Work::Backward || work == Work::InputGradient;
  const Seconds shards = is_forward ? cost.shards : is_backward ? cost.backward_shards : Seconds{};
  return std::min(shards, time_of(work, cost));
}

Seconds overlapped_communication(Work work, const StageCost& cost, Work other_work,
                                 const StageCost& other_cost, double overlap) {
  const Seconds computes = time_of(other_work, other_cost) - shards_of(other_work, other_cost);
  return std::min(shards_of(work, cost), computes) * overlap;
}

}  // namespace pipewright::plan
