#include "list_schedule.hpp"
#include "pipewright/plan/schedules.hpp"
#include "sizes.hpp"

namespace pipewright::plan {

Schedule make_hanayo(int ranks, int microbatches, int waves) {
  check_sizes("hanayo", ranks, microbatches, 2 * waves);
  // With P alone, the next unit of P microbatches would wait for the last of the one before.
  const int in_flight = ranks + (ranks + 1) / 2;
  return list_schedule(v_placement(ranks, 2 * waves * ranks), microbatches, in_flight);
}

}  // namespace pipewright::plan
