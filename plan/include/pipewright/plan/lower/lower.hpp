#pragma once

// Lowering grows a Schedule into a Program by small passes from value to value, one file each in
// src/lower.

#include "pipewright/plan/costs/training_memory.hpp"
#include "pipewright/plan/program/program.hpp"
#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

/// Where a receive stands in its rank's list: right before the action that needs its data, or, as
/// torch 2.11 places them, as soon as the sender has sent. Early receives hold buffers longer, and
/// in a queue with other transfers they hold those up.
enum class ReceivePlacement { JustInTime, WithSend };

struct LoweringOptions {
  CommunicatorLayout communicators = CommunicatorLayout::Edge;
  TransferMode transfers = TransferMode::Eager;
  bool blocking = false;
  ReceivePlacement receives = ReceivePlacement::JustInTime;
  int replicas = 1;  // pipelines side by side: with more than one, gradients are reduced
  bool overlap_reductions = true;  // beside the backward; false: behind all compute of the rank
  std::vector<int> tied_stages{};  // that share a weight
  int step_every = 0;  // backwards of a stage between optimizer steps; 0: one step at the end
  RecomputeMode recompute = RecomputeMode::None;
  int recompute_layers = 1;  // that run again at a time, under RecomputeMode::Full
  /// The stage of ZeRO. 1: each copy of a stage steps its shard alone. 2: gradients stand as
  /// shards, too, so that the sum over copies is made of each microbatch by itself. 3: parameters,
  /// too, which are gathered before they are used, and let go of.
  int zero = 0;
  int whole_stages = 3;        // that a rank has gathered at once, under ZeRO stage 3
  bool gradient_norm = false;  // is needed before a step, to clip or to divide by a scale
  bool share_loss = false;     // all ranks get to know it
  friend bool operator==(const LoweringOptions&, const LoweringOptions&) = default;
};

/// All passes in their order. Throws InputError when the schedule is not valid, a tied stage does
/// not exist, steps between the backwards would come before their gradients are summed, or ZeRO
/// from stage 2 on is asked for where the schedule or another option forbids it.
Program lower(const Schedule& schedule, const LoweringOptions& options = {});
/// What torch 2.11 makes of the same compute-only file. Its runtime needs all of it: it has one
/// queue for each directed pair of ranks, so receives must stand in the order of the sends; it
/// takes the mean over microbatches in REDUCE_GRAD, even with one replica; and sharded modules wait
/// for UNSHARD. Throws InputError when the schedule is not valid.
Program lower_as_torch(const Schedule& schedule);

/// The passes behind those that add transfers, in their order.
Program with_all_but_transfers(Program program, const LoweringOptions& options);

/// The compute actions alone, as instructions.
Program from_schedule(const Schedule& schedule, const LoweringOptions& options);
/// A send right after the action that produces, a receive right before the one that needs, or
/// earlier where the order of the sends on that directed pair of ranks demands it: queues match
/// sends and receives by their order alone. None between stages of one rank. Of a fused pair, both
/// receives come before it and both sends after.
Program with_transfers(Program program);
/// The same, with every receive as early as the order of the sends allows: ranks take turns, and
/// who sends puts the receive at the end of what the receiver has so far.
Program with_early_receives(Program program);
/// The first stage loads inputs, the last stage targets, right before the forward.
Program with_loads(Program program);
/// Which gradients are summed, and when.
struct ReductionOptions {
  int replicas = 1;
  std::vector<int> tied_stages{};
  bool scatter = false;  // each copy gets the sums of its shard alone
  bool overlap = true;   // beside the backward; false: behind everything else in the rank's list
};
/// Right after the last weight gradient of a stage and the sends behind it, its gradients are
/// summed over its copies: those of all pipelines, and of all routes that pass through the stage.
/// Stages that share a weight come first: once a rank has the last weight gradient of all of them,
/// their gradients are summed over layers, and then over copies. A rank runs its collectives one
/// after the other, and all ranks of several have them in one order.
Program with_reductions(Program program, const ReductionOptions& options);
/// Behind each weight gradient of a stage and the sends that follow it, the sum of the gradients of
/// its microbatch over the copies of the stage, each of which gets its shard.
Program with_scatters(Program program);
/// All ranks get the norm of all gradients behind their reductions.
Program with_gradient_norm(Program program);
/// Every stage steps its optimizer at the end of its rank's list, or after every `step_every`
/// backwards. None in a forward-only Program.
Program with_optimizer_steps(Program program, int step_every = 0);
/// Behind the steps of a rank, the copies of each of its stages gather the parameters.
Program with_gathers(Program program, int replicas);
/// At the end of its list each rank gets the losses of all.
Program with_shared_loss(Program program);
/// Gathers a stage's sharded parameters ahead of its use and lets go of them when another stage's
/// are needed, so that at most `most` stages of a rank are whole at once.
Program with_unshards(Program program, int most = 3);
/// Gives each microbatch on a stage the lowest slot that is free from its first use to its last.
Program with_slots(Program program);

}  // namespace pipewright::plan
