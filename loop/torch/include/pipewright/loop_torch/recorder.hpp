#pragma once

// Takes what the executor reports and makes a Timeline of it.

#include <string>
#include <vector>

#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/loop/compare/action_errors.hpp"
#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::loop {

/// What was measured of one step.
struct StepRecord {
  plan::Seconds begin;  // by the machine's steady clock
  plan::Seconds duration;
  std::vector<std::vector<exec::InstructionRecord>> ranks;
  /// Of the pipelines after the first, one after the other: the ranks of each.
  std::vector<std::vector<exec::InstructionRecord>> others{};
};

class Recorder {
 public:
  /// Records the pipelines side by side, and of their ranks the first shards. A prediction is of
  /// the first pipeline, a record of steps of all.
  Recorder(const plan::Program& program, const exec::JobGrid& grid);
  explicit Recorder(const plan::Program& program)
      : Recorder(program, exec::JobGrid(static_cast<int>(program.ranks.size()), 1)) {}

  /// For ExecutorOptions: each rank writes to its own list, so no lock is taken.
  exec::Observer observer();
  /// Call between steps: the step that just ended becomes a record.
  void end_step(const exec::StepResult& step);

  /// The newest 256 steps.
  const std::vector<StepRecord>& steps() const { return steps_; }

 private:
  std::vector<int> place_;  // by rank of the job: pipeline by pipeline; -1: not recorded
  std::size_t ranks_;       // of a pipeline
  std::vector<std::vector<exec::InstructionRecord>> current_;  // by place
  std::vector<StepRecord> steps_;
};

plan::Timeline timeline_of(const StepRecord& step, const std::string& name);

/// Which of the steps after the first `skip` has the duration nearest to their median.
std::size_t typical_step(const std::vector<StepRecord>& steps, std::size_t skip);

}  // namespace pipewright::loop
