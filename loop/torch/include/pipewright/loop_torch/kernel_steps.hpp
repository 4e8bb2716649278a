#pragma once

// Records the kernels that each action of a training step runs on its device.

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/plan/program/program.hpp"
#include "pipewright/profiler/activity/work_log.hpp"
#include "pipewright/profiler/activity/work_report.hpp"

namespace pipewright::loop {

/// The kernels of the last step that was recorded.
struct StepKernels {
  profiler::RecordedPass pass;
  bool on_device = false;
  std::string source;
  std::optional<double> overhead{};  // relative slow-down of a recorded step
};

/// Records every other step of a training, so that recorded and unrecorded steps alternate and can
/// be compared. Supports the ranks in this process, and a single pipeline.
class KernelSteps {
 public:
  /// Both arguments must outlive it.
  KernelSteps(profiler::ActivitySource& source, const plan::Program& program);

  /// Hooks for ExecutorOptions; they are called on the threads of the ranks.
  void starting(const plan::Instruction& i);
  void ended(const exec::InstructionRecord& record);

  /// Call these around each step, while no rank runs.
  void begin_step();
  void end_step(plan::Seconds duration);

  /// Returns the last recorded step, or nothing if no step was recorded.
  std::optional<StepKernels> take();

 private:
  int rank_of(const plan::Instruction& i);

  profiler::ActivitySource& source_;
  const plan::Program& program_;
  profiler::WorkLog log_;
  std::mutex mutex_;
  std::map<std::thread::id, int> ranks_;
  int step_ = 0;
  std::vector<double> with_records_, without_;
  std::optional<profiler::RecordedPass> last_;
};

}  // namespace pipewright::loop
