#include "pipewright/plan/lower/lower.hpp"

#include <fmt/format.h>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/schedules/backward_passes.hpp"
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
      if (is_collective(i.kind))
        throw InputError(
            fmt::format("the gradients of stage {} are summed over its copies or with those of a "
                        "tied stage at the end of the iteration, which does not go with a step "
                        "after every {} backwards",
                        i.stage, step_every));
}

}  // namespace

Program lower(const Schedule& schedule, const LoweringOptions& options) {
  check(schedule, options);
  const bool recomputes = options.recompute == RecomputeMode::Full;
  Program program = from_schedule(recomputes ? with_recompute(schedule) : schedule, options);
  program = options.receives == ReceivePlacement::JustInTime
                ? with_transfers(std::move(program))
                : with_early_receives(std::move(program));
  return with_all_but_transfers(std::move(program), options);
}

Program with_all_but_transfers(Program program, const LoweringOptions& options) {
  const bool recomputes = options.recompute == RecomputeMode::Full;
  program.recompute_layers = recomputes ? options.recompute_layers : 0;
  program.selective_recompute = options.recompute == RecomputeMode::Selective;
  program = with_loads(std::move(program));
  // Where a norm is taken, of whole tensors, all copies need the whole sums.
  program = with_reductions(std::move(program),
                            {.replicas = options.replicas,
                             .tied_stages = options.tied_stages,
                             .scatter = options.shard_optimizer && !options.gradient_norm,
                             .overlap = options.overlap_reductions});
  if (options.step_every > 0)
    check_steps(program, options.step_every);
  if (options.gradient_norm)
    program = with_gradient_norm(std::move(program));
  program = with_optimizer_steps(std::move(program), options.step_every);
  if (options.shard_optimizer)
    program = with_gathers(std::move(program), options.replicas);
  if (options.share_loss)
    program = with_shared_loss(std::move(program));
  return with_slots(std::move(program));
}

}  // namespace pipewright::plan
