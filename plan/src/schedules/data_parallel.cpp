#include "pipewright/plan/deepspeed.hpp"
#include "pipewright/plan/schedules.hpp"

namespace pipewright::plan {

Schedule make_data_parallel(int ranks, int microbatches) {
  return to_schedule(deepspeed_data_parallel(ranks, microbatches));
}

}  // namespace pipewright::plan
