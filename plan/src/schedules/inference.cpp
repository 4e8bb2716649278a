#include "interleaved_order.hpp"
#include "pipewright/plan/schedules.hpp"
#include "sizes.hpp"

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

}  // namespace pipewright::plan
