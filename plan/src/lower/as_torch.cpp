#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/schedules/validate_schedule.hpp"

namespace pipewright::plan {

Program lower_as_torch(const Schedule& schedule) {
  validate(schedule);
  Program program = with_unshards(from_schedule(schedule, {}));
  // Torch has the reductions also with one replica.
  program = with_reductions(std::move(program), {.replicas = 2});
  return with_early_receives(std::move(program));
}

}  // namespace pipewright::plan
