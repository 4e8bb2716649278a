#include "pipewright/plan/lower/lower.hpp"

#include <fmt/format.h>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/program/computation.hpp"
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

/// Rejects steps between backwards if there are reductions, because such a step would use gradients
/// that are not reduced yet.
void check_steps(const Program& program, int step_every) {
  for (const auto& instructions : program.ranks)
    for (const Instruction& i : instructions)
      if (is_collective(i.kind))
        throw InputError(
            fmt::format("the gradients of stage {} are summed over its replicas or with those of a "
                        "tied stage at the end of the iteration, which is not possible with a step "
                        "after every {} backwards",
                        i.stage, step_every));
}

bool has_copies(const Program& program, const LoweringOptions& options) {
  return options.replicas > 1 || program.placement.routes.size() > 1;
}

/// Rejects what does not work with a reduction after each backward, which ZeRO needs from stage 2
/// on.
void check_divided(const Program& program, const LoweringOptions& options) {
  const auto refuse = [&](const std::string& why) {
    throw InputError(fmt::format(
        "ZeRO stage {} sums the gradients of each microbatch over the replicas of its stage, {}",
        options.zero, why));
  };
  if (program.placement.routes.size() > 1)
    refuse(
        fmt::format("which must all do the same, but this schedule goes through the stages in {} "
                    "directions. Use ZeRO stage 1",
                    program.placement.routes.size()));
  if (program.asynchronous)
    refuse("which is not possible with steps between the backwards. Remove ZeRO");
  if (!options.overlap_reductions)
    refuse("and cannot leave all sums to the end (overlap_reductions). Use ZeRO stage 1");
}

/// Returns true if gradients are partitioned (ZeRO stage 2 or 3). Throws if the Program does not
/// support that.
bool divides(const Program& program, const LoweringOptions& options) {
  const bool does = options.zero >= 2 && has_copies(program, options);
  if (does)
    check_divided(program, options);
  return does;
}

/// Checks a user's list with transfers, which must contain its own UNSHARD.
void require_unshards(const Program& program) {
  for (const auto& rank : program.ranks)
    for (const Instruction& i : rank)
      if (i.kind == InstructionKind::Unshard)
        return;
  throw InputError(
      "ZeRO stage 3 gathers parameters before they are used, and this list has transfers but no "
      "UNSHARD. Give only its compute actions, or use ZeRO stage 2");
}

}  // namespace

Program lower(const Schedule& schedule, const LoweringOptions& options) {
  check(schedule, options);
  const bool recomputes = options.recompute == RecomputeMode::Full;
  Program program = from_schedule(recomputes ? with_recompute(schedule) : schedule, options);
  if (divides(program, options) && options.zero >= 3)
    program = with_unshards(std::move(program), options.whole_stages);
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
  const bool is_divided = divides(program, options);
  if (is_divided && options.zero >= 3)
    require_unshards(program);
  const bool scatters = is_divided && !is_forward_only(program);
  program = with_reductions(std::move(program), {.replicas = scatters ? 1 : options.replicas,
                                                 .tied_stages = options.tied_stages,
                                                 .scatter = options.zero > 0,
                                                 .overlap = options.overlap_reductions});
  if (scatters)
    program = with_scatters(std::move(program));
  if (options.step_every > 0)
    check_steps(program, options.step_every);
  if (options.gradient_norm)
    program = with_gradient_norm(std::move(program));
  program = with_optimizer_steps(std::move(program), options.step_every);
  if (options.zero == 1 || options.zero == 2)
    program = with_gathers(std::move(program), options.replicas);
  if (options.share_loss)
    program = with_shared_loss(std::move(program));
  return with_slots(std::move(program));
}

}  // namespace pipewright::plan
