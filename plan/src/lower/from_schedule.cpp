#include "pipewright/plan/lower.hpp"

namespace pipewright::plan {

Program from_schedule(const Schedule& schedule, const LoweringOptions& options) {
  Program program{.microbatches = schedule.microbatches,
                  .rank_of_stage = rank_of_stage(schedule),
                  .communicators = options.communicators,
                  .transfers = options.transfers,
                  .blocking = options.blocking,
                  .ranks = {}};
  for (const auto& actions : schedule.ranks) {
    auto& instructions = program.ranks.emplace_back();
    for (const auto& [kind, stage, microbatch] : actions)
      instructions.push_back({instruction_kind(kind), stage, microbatch});
  }
  return program;
}

Program lower(const Schedule& schedule, const LoweringOptions& options) {
  validate(schedule);
  return with_slots(
      with_optimizer_steps(with_loads(with_transfers(from_schedule(schedule, options)))));
}

}  // namespace pipewright::plan
