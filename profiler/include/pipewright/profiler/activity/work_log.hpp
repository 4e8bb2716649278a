#pragma once

// Who asked the device for what: each thread says what it is at, and its requests get that label.

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "pipewright/profiler/activity/activity_source.hpp"
#include "pipewright/profiler/activity/work_range.hpp"

namespace pipewright::profiler {

/// Notes what each thread is at, and labels what it asks the device for.
class WorkLog {
 public:
  /// The source must outlive it.
  explicit WorkLog(ActivitySource& source) : source_(source) {}

  /// From now on this thread is at that; what it was at before is over. While a log is off it is
  /// nothing.
  void begin(int rank, const plan::Instruction& instruction, int layer = -1);
  void end();
  /// Ends what this thread is at if it is that.
  void end_of(const plan::Instruction& instruction);

  /// Records and notes from here on.
  void start();
  /// Ends what threads are at that rest by now.
  void stop();
  /// What was noted since the last time, by rank and time. No thread is at anything.
  std::vector<WorkRange> take();

 private:
  struct Thread {
    std::optional<WorkRange> at{};
    bool is_labelled = false;
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
