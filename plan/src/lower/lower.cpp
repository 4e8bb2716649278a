#include "pipewright/plan/lower/lower.hpp"

#include <fmt/format.h>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/schedules/validate_schedule.hpp"

namespace pipewright::plan {
namespace {

void check(const Schedule& schedule, const LoweringOptions& options) {
  validate(schedule);
  const int stages = stage_count(schedule);
  for (const int stage : options.tied_stages)
    if (stage < 0 || stage >= stages)
      throw InputError(fmt::format("stage {} shares a weight, but there are stages 0 to {} only",
                                   stage, stages - 1));
}

/// A step between backwards would use gradients that are not summed yet.
void check_steps(const Program& program, int step_every) {
  for (const auto& instructions : program.ranks)
    for (const Instruction& i : instructions)
      if (is_reduce(i.kind))
        throw InputError(
            fmt::format("the gradients of stage {} are summed over its copies or with those of a "
                        "tied stage at the end of the iteration, which does not go with a step "
                        "after every {} backwards",
                        i.stage, step_every));
}

}  // namespace

Program lower(const Schedule& schedule, const LoweringOptions& options) {
  check(schedule, options);
  Program program = from_schedule(schedule, options);
  program = options.receives == ReceivePlacement::JustInTime
                ? with_transfers(std::move(program))
                : with_early_receives(std::move(program));
  program = with_loads(std::move(program));
  program = with_tied_reduces(std::move(program), options.tied_stages);
  program = with_gradient_reduces(std::move(program), options.replicas);
  if (!options.overlap_reductions)
    program = with_reduces_last(std::move(program));
  if (options.step_every > 0)
    check_steps(program, options.step_every);
  program = with_optimizer_steps(std::move(program), options.step_every);
  return with_slots(std::move(program));
}

}  // namespace pipewright::plan
