#pragma once

// Reads the microbatches of a rank on a background thread before the rank reaches their LOADs, so
// that a LOAD only waits for the read to finish.

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "pipewright/exec/data/dataset.hpp"
#include "pipewright/exec/memory/memory_meter.hpp"

namespace pipewright::exec {

/// The data that a stage needs of a microbatch: inputs for the first stage, targets and their
/// weight for the last one.
struct Reading {
  const Dataset* data = nullptr;
  int step = 0;
  int microbatch = 0;
  bool inputs = false;
  bool targets = false;
  friend bool operator==(const Reading&, const Reading&) = default;
};

struct ReadData {
  Tensors inputs, targets;
  double weight = 1;
};

/// Reads now. Throws what the Dataset throws.
ReadData read(const Reading& what);

/// The read-ahead of a rank. Data that was read but not yet taken is charged to no rank's memory
/// account. Data that was taken is charged to the account of the taking thread, if reading
/// allocated it.
class ReadAhead {
 public:
  /// Keeps at most `ahead` read microbatches that have not been taken; 0: `take` reads. `begin`:
  /// called first on the background thread.
  explicit ReadAhead(int ahead, std::function<void()> begin = {});
  /// Blocks until no read is in progress.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// Sets the reads to come, in order. If they begin with all reads expected so far, finished reads
  /// are kept; otherwise they are dropped. An empty list changes nothing.
  void expect(std::vector<Reading> what);
  /// Returns the next of the expected reads, once it has finished. If it failed, throws its
  /// exception until `stop`.
  ReadData take(const Reading& what);
  /// Expects nothing more. Blocks until no read is in progress.
  void stop();

 private:
  struct Result {
    ReadData data;
    std::exception_ptr failure;
  };

  void serve();
  bool begins(const std::vector<Reading>& what) const;
  bool may_read() const;

  const std::size_t ahead_;
  const std::function<void()> begin_;
  MemoryAccount account_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Reading> expected_;
  std::deque<Result> done_;  // for the first of `expected_`
  bool reading_ = false, finished_ = false;
  std::thread thread_;
};

}  // namespace pipewright::exec
