#pragma once

// Collects the executor's records and builds a Timeline from them.

#include <string>
#include <vector>

#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/loop/compare/action_errors.hpp"
#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::loop {

/// The records of one step.
struct StepRecord {
  plan::Seconds begin;  // on the machine's steady clock
  plan::Seconds duration;
  std::vector<std::vector<exec::InstructionRecord>> ranks;
  /// The ranks of the second and later data-parallel replicas, concatenated.
  std::vector<std::vector<exec::InstructionRecord>> others{};
};

class Recorder {
 public:
  /// Records all data-parallel replicas, and in each tensor-parallel group the first rank. A
  /// prediction covers the first replica only, whereas recorded steps cover all.
  Recorder(const plan::Program& program, const exec::JobGrid& grid);
  explicit Recorder(const plan::Program& program)
      : Recorder(program, exec::JobGrid(static_cast<int>(program.ranks.size()), 1)) {}

  /// Returns an observer for ExecutorOptions. Each rank appends to its own list, so no lock is
  /// needed.
  exec::Observer observer();
  /// Closes the step that has just ended and stores it. Call it between steps.
  void end_step(const exec::StepResult& step);

  /// The newest 256 steps.
  const std::vector<StepRecord>& steps() const { return steps_; }

 private:
  /// By rank of the job: index into current_, replica by replica; -1 if not recorded.
  std::vector<int> place_;
  std::size_t ranks_;                                          // of a pipeline
  std::vector<std::vector<exec::InstructionRecord>> current_;  // by place
  std::vector<StepRecord> steps_;
};

plan::Timeline timeline_of(const StepRecord& step, const std::string& name);

/// Returns the index of the step, after the first `skip`, whose duration is closest to their
/// median.
std::size_t typical_step(const std::vector<StepRecord>& steps, std::size_t skip);

}  // namespace pipewright::loop
