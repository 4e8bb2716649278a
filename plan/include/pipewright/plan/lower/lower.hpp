#pragma once

// Lowering turns a Schedule into a Program by small passes from value to value, one file each in
// src/lower.

#include "pipewright/plan/costs/training_memory.hpp"
#include "pipewright/plan/program/program.hpp"
#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

/// Position of a receive in its rank's list: directly before the action that needs its data or, as
/// torch 2.11 does, as soon as the sender has sent. Early receives occupy buffers for longer, and
/// in a queue with other transfers they delay those.
enum class ReceivePlacement { JustInTime, WithSend };

/// Options of lowering, which select the passes.
struct LoweringOptions {
  CommunicatorLayout communicators = CommunicatorLayout::Edge;
  TransferMode transfers = TransferMode::Eager;
  bool blocking = false;
  ReceivePlacement receives = ReceivePlacement::JustInTime;
  int replicas = 1;  // data-parallel pipelines; more than one requires gradient reduction
  bool overlap_reductions = true;  // with the backward; false: after all compute of the rank
  std::vector<int> tied_stages{};  // stages that share a weight
  int step_every = 0;  // backwards of a stage between optimizer steps; 0: one step at the end
  RecomputeMode recompute = RecomputeMode::None;
  int recompute_layers = 1;  // layers per recomputed group, under RecomputeMode::Full
  /// The stage of ZeRO. 1: each replica of a stage steps only its shard. 2: gradients are sharded
  /// too, so those of each microbatch are reduced separately. 3: parameters are sharded too; they
  /// are all-gathered before use and resharded afterwards.
  int zero = 0;
  int whole_stages = 3;        // stages that a rank keeps gathered at once, under ZeRO stage 3
  bool gradient_norm = false;  // a step needs the norm, for clipping or loss scaling
  bool share_loss = false;     // all ranks get the loss
  friend bool operator==(const LoweringOptions&, const LoweringOptions&) = default;
};

/// Runs all passes in their order. Throws InputError if the schedule is not valid, if a tied stage
/// does not exist, if steps between backwards would come before their gradients are reduced, or if
/// the schedule or another option is incompatible with ZeRO stage 2 or 3.
Program lower(const Schedule& schedule, const LoweringOptions& options = {});
/// Returns what torch 2.11 makes of the same compute-only file. Its runtime has one queue for each
/// directed pair of ranks, so receives must be in the order of the sends; it computes the mean over
/// microbatches in REDUCE_GRAD, even with one replica; and sharded modules wait for UNSHARD. Throws
/// InputError if the schedule is not valid.
Program lower_as_torch(const Schedule& schedule);

/// Runs the passes that follow the one for transfers, in their order.
Program with_all_but_transfers(Program program, const LoweringOptions& options);

/// Converts only the compute actions to instructions.
Program from_schedule(const Schedule& schedule, const LoweringOptions& options);
/// Adds a send directly after the action that produces the data, and a receive directly before the
/// action that needs it. The receive comes earlier if the order of the sends on that directed pair
/// of ranks demands it, because queues match sends and receives only by their order. There is no
/// transfer between stages of one rank. For a fused pair, both receives come before it and both
/// sends after it.
Program with_transfers(Program program);
/// Adds transfers with every receive as early as the order of the sends allows: ranks take turns,
/// and each send appends its receive to the receiver's list so far.
Program with_early_receives(Program program);
/// Adds loads directly before the forward: inputs on the first stage, targets on the last.
Program with_loads(Program program);
/// Selects the gradients to reduce, and when.
struct ReductionOptions {
  int replicas = 1;
  std::vector<int> tied_stages{};
  bool scatter = false;  // each replica gets only the sums of its shard
  bool overlap = true;   // with the backward; false: after everything else in the rank's list
};
/// Adds the reduction of each stage's gradients over its copies, after the stage's last weight
/// gradient and the sends that follow it. The copies are those of all pipelines, and of all routes
/// that pass through the stage. Tied weights come first: once a rank has the last weight gradient
/// of all stages that share a weight, their gradients are summed over layers, and then over copies.
/// A rank runs its collectives one after another, and all their members have them in the same
/// order.
Program with_reductions(Program program, const ReductionOptions& options);
/// Adds, after each weight gradient of a stage and the sends that follow it, a reduce-scatter of
/// that microbatch's gradients over the copies of the stage.
Program with_scatters(Program program);
/// Adds the global norm of all gradients after their reductions; all ranks get it.
Program with_gradient_norm(Program program);
/// Adds each stage's optimizer step at the end of its rank's list, or after every `step_every`
/// backwards. Adds nothing to a forward-only Program.
Program with_optimizer_steps(Program program, int step_every = 0);
/// Adds an all-gather of each stage's parameters among its copies, after the rank's steps.
Program with_gathers(Program program, int replicas);
/// Adds, at the end of each rank's list, the sharing of all losses with all ranks.
Program with_shared_loss(Program program);
/// Adds all-gathers of a stage's sharded parameters ahead of their use, and reshards when other
/// stages' parameters are needed, so that at most `most` stages of a rank are gathered at once.
Program with_unshards(Program program, int most = 3);
/// Assigns each microbatch on a stage the lowest slot that is free from its first use to its last.
Program with_slots(Program program);

}  // namespace pipewright::plan
