#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/schedules/placement_of.hpp"

namespace pipewright::plan {

Program from_schedule(const Schedule& schedule, const LoweringOptions& options) {
  Program program{.microbatches = schedule.microbatches,
                  .placement = placement_of(schedule),
                  .communicators = options.communicators,
                  .transfers = options.transfers,
                  .blocking = options.blocking,
                  .asynchronous = options.step_every > 0,
                  .ranks = {}};
  for (const auto& actions : schedule.ranks) {
    auto& instructions = program.ranks.emplace_back();
    instructions.reserve(actions.size());
    for (const Action& action : actions)
      instructions.push_back({.kind = instruction_kind(action.kind),
                              .stage = action.stage,
                              .microbatch = action.microbatch,
                              .fused_with_next = action.fused_with_next});
  }
  return program;
}

}  // namespace pipewright::plan
