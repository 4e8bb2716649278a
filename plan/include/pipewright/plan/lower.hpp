#pragma once

// Lowering grows a Schedule into a Program by small passes, one file each in src/lower.

#include "pipewright/plan/program.hpp"
#include "pipewright/plan/schedule.hpp"

namespace pipewright::plan {

struct LoweringOptions {
  CommunicatorLayout communicators = CommunicatorLayout::Edge;
  TransferMode transfers = TransferMode::Eager;
  bool blocking = false;
};

/// All passes in their order. The schedule must be valid; throws InputError otherwise.
Program lower(const Schedule& schedule, const LoweringOptions& options = {});

/// The compute actions alone, as instructions.
Program from_schedule(const Schedule& schedule, const LoweringOptions& options);
/// A send right after the action that produces, a receive right before the one that needs; none
/// between stages of one rank.
Program with_transfers(Program program);
/// The first stage loads inputs, the last stage targets, right before the forward.
Program with_loads(Program program);
/// Every stage steps its optimizer at the end of its rank's list.
Program with_optimizer_steps(Program program);
/// Gives each microbatch on a stage the lowest slot that is free from its first use to its last.
Program with_slots(Program program);

}  // namespace pipewright::plan
