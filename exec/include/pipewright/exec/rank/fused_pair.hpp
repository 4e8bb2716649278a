#pragma once

// The arguments of a user's function that runs actions of a schedule: a fused pair, such as
// (1F2;0B1)OVERLAP_F_B (ExecutorOptions::run_pair), or a single action, such as 1F2
// (ExecutorOptions::run_action).

#include <functional>

#include "pipewright/plan/program/instruction.hpp"

namespace pipewright::exec {

/// A fused pair whose inputs have arrived. Each action must run exactly once, in either order, on
/// the calling thread; the order does not change the bits. All tensor-parallel ranks of the stages
/// must use the same order.
struct FusedPair {
  int rank = 0;  // of the job
  int step = 0;
  plan::Instruction first;   // a forward, in the schedules that have fused pairs
  plan::Instruction second;  // a backward, with its own stage and microbatch
  std::function<void()> run_first;
  std::function<void()> run_second;
  /// Runs both actions as the executor would without a user's function: interleaved if that can
  /// hide communication.
  std::function<void()> run_both;
};

/// An action whose inputs have arrived. It must run exactly once, on the calling thread.
struct ReadyAction {
  int rank = 0;  // of the job
  int step = 0;
  plan::Instruction instruction;
  std::function<void()> run;
};

}  // namespace pipewright::exec
