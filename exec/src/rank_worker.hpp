#pragma once

// The interpreter: runs one rank's list of instructions, whatever schedule they came from.

#include <chrono>
#include <map>
#include <memory>

#include "pipewright/exec/transport.hpp"
#include "stage.hpp"

namespace pipewright::exec {

using Clock = std::chrono::steady_clock;

class RankWorker {
 public:
  /// Builds the rank's stages, charged to the rank's memory account. References are kept.
  RankWorker(int rank, const plan::Program& program, const plan::Partition& partition,
             const TrainingSetup& setup, const ExecutorOptions& options, Transport& transport);

  /// Runs the whole list once. Throws Aborted when it was stopped, RankFailure naming rank and
  /// instruction when its work threw.
  void run(int step, Clock::time_point step_begin);

  const std::map<int, std::unique_ptr<Stage>>& stages() const { return stages_; }

 private:
  void run_one(const plan::Instruction& i, int step);
  void perform(const plan::Instruction& i, int step);
  void post(const plan::Instruction& receive);
  void complete(const plan::Instruction& receive);
  void fetch_input(const plan::Instruction& i);
  void hand_on(const plan::Instruction& i);
  void note(const plan::Instruction& i, Clock::time_point begin, plan::Bytes held_before) const;
  bool stopped() const;
  bool lives_here(int stage) const { return stages_.contains(stage); }
  Stage& stage(int index) { return *stages_.at(index); }

  int rank_;
  const plan::Program& program_;
  const ExecutorOptions& options_;
  Transport& transport_;
  MemoryAccount account_;
  std::map<int, std::unique_ptr<Stage>> stages_;
  std::map<plan::InstructionKey, Clock::time_point>
      posted_;  // receives whose data nothing has needed yet
  std::map<plan::InstructionKey, at::Tensor>
      handed_over_;  // between stages of this rank, by their receive
  Clock::time_point step_begin_;
};

}  // namespace pipewright::exec
