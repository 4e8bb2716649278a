#pragma once

// What the devices of a training run, action by action.

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

/// The last step that was recorded.
struct StepKernels {
  profiler::RecordedPass pass;
  bool on_device = false;
  std::string source;
  std::optional<double> overhead{};  // of recording, over a step
};

/// Records every other step of a training, so that steps with records and without lie side by side.
/// It knows the ranks in this process, and a single pipeline.
class KernelSteps {
 public:
  /// Both must outlive it.
  KernelSteps(profiler::ActivitySource& source, const plan::Program& program);

  /// For ExecutorOptions, on the ranks' own threads.
  void starting(const plan::Instruction& i);
  void ended(const exec::InstructionRecord& record);

  /// Around each step, while the ranks rest.
  void begin_step();
  void end_step(plan::Seconds duration);

  /// Nothing where no step was recorded.
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
