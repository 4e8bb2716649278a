#pragma once

// Records which host range submits which device work: each thread announces its current work, whose
// label its device calls get.

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "pipewright/profiler/activity/activity_source.hpp"
#include "pipewright/profiler/activity/work_range.hpp"

namespace pipewright::profiler {

/// Records the ranges of each thread and labels the device work that it submits.
class WorkLog {
 public:
  /// Keeps a reference to `source`.
  explicit WorkLog(ActivitySource& source) : source_(source) {}

  /// Begins a range of this thread and ends the previous one. Does nothing while the log is
  /// stopped.
  void begin(int rank, const plan::Instruction& instruction, int layer = -1);
  void end();
  /// Ends this thread's range if it belongs to this instruction.
  void end_of(const plan::Instruction& instruction);

  /// Starts recording.
  void start();
  /// Stops recording, and ends the ranges that are still open.
  void stop();
  /// Returns the ranges since the last call, sorted by rank and time. No range may be open.
  std::vector<WorkRange> take();

 private:
  struct Thread {
    std::optional<WorkRange> at{};
    bool is_labeled = false;
  };
  void close(Thread& thread, Nanoseconds now);

  ActivitySource& source_;
  std::mutex mutex_;
  bool is_on_ = false;
  std::uint64_t last_label_ = 0;
  std::map<std::thread::id, Thread> threads_;
  std::vector<WorkRange> done_;
};

}  // namespace pipewright::profiler
