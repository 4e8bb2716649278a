#pragma once

// Actions of a schedule as a function of one's own runs them: a fused pair, (1F2;0B1)OVERLAP_F_B
// (ExecutorOptions::run_pair), or any one, 1F2 (ExecutorOptions::run_action).

#include <functional>

#include "pipewright/plan/program/instruction.hpp"

namespace pipewright::exec {

/// What both take in is there. Each of the two runs once, in whichever order, on the thread that
/// was called; the bits are those of any order. Where shards share out the stages, all of them call
/// alike.
struct FusedPair {
  int rank = 0;  // of the job
  int step = 0;
  plan::Instruction first;   // in the schedules that come along a forward
  plan::Instruction second;  // and a backward, each of a stage and a microbatch of its own
  std::function<void()> run_first;
  std::function<void()> run_second;
  /// Both, as where there is no function: in turns where there is something to hide.
  std::function<void()> run_both;
};

/// What it takes in is there. It runs once, on the thread that was called.
struct OwnAction {
  int rank = 0;  // of the job
  int step = 0;
  plan::Instruction instruction;
  std::function<void()> run;
};

}  // namespace pipewright::exec
