#include "closed_forms.hpp"
#include "pipewright/plan/generators/deepspeed.hpp"
#include "pipewright/plan/generators/generators.hpp"

namespace pipewright::plan {

Schedule make_data_parallel(int ranks, int microbatches) {
  return to_schedule(deepspeed_data_parallel(ranks, microbatches));
}

ScheduleDescriptor schedule::data_parallel() {
  return {.name = "data-parallel",
          .takes = "any sizes: M microbatches for each rank",
          .is_data_parallel = true,
          .is_instruction_stream = true,
          .make = [](const ScheduleRequest& r) -> GeneratedSchedule {
            DeepSpeedStream stream = deepspeed_data_parallel(r.ranks, r.microbatches);
            return {.schedule = to_schedule(stream), .stream = std::move(stream)};
          },
          .bubble = constant("0", 0),
          .activations = constant("1", 1)};
}

}  // namespace pipewright::plan
