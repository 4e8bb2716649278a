#pragma once

// Takes what the executor reports and makes a Timeline of it.

#include <string>
#include <vector>

#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/plan/timeline/comparison.hpp"
#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::loop {

/// What was measured of one step.
struct StepRecord {
  plan::Seconds begin;  // by the machine's steady clock
  plan::Seconds duration;
  std::vector<std::vector<exec::InstructionRecord>> ranks;
};

class Recorder {
 public:
  /// Records the first of the pipelines side by side, and of its ranks the first shards: what is
  /// predicted.
  Recorder(const plan::Program& program, exec::JobGrid grid);
  explicit Recorder(const plan::Program& program)
      : Recorder(program, exec::JobGrid(static_cast<int>(program.ranks.size()), 1)) {}

  /// For ExecutorOptions: each rank writes to its own list, so no lock is taken.
  exec::Observer observer();
  /// Call between steps: the step that just ended becomes a record.
  void end_step(const exec::StepResult& step);

  /// The newest 256 steps.
  const std::vector<StepRecord>& steps() const { return steps_; }

 private:
  exec::JobGrid grid_;
  std::vector<std::vector<exec::InstructionRecord>> current_;
  std::vector<StepRecord> steps_;
};

plan::Timeline timeline_of(const StepRecord& step, const std::string& name);

/// Which of the steps after the first `skip` has the duration nearest to their median.
std::size_t typical_step(const std::vector<StepRecord>& steps, std::size_t skip);

}  // namespace pipewright::loop
