#pragma once

// Reader that fetches a rank's microbatches on a background thread before the rank reaches their
// LOADs, so that a LOAD only waits for the read to finish.

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

/// A read of what a stage needs of a microbatch: the inputs if it is the first stage, the targets
/// and their weight if it is the last one.
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

/// Reads on the calling thread. Throws what the Dataset throws.
ReadData read(const Reading& what);

/// The reader of one rank. Data is charged to no rank's memory account until it is taken, and then
/// to that of the thread that takes it, unless the Dataset had allocated it before.
class ReadAhead {
 public:
  /// Reads at most `ahead` microbatches before they are taken; 0: `take` reads, without a thread.
  /// `begin`: called on the background thread before its first read.
  explicit ReadAhead(int ahead, std::function<void()> begin = {});
  /// Blocks until no read is in progress.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// Sets the list of reads that `take` will ask for, in order. If it begins with all reads that
  /// are expected so far, reads that have finished are kept. Otherwise they are dropped, as by
  /// `stop`. An empty list changes nothing.
  void expect(std::vector<Reading> what);
  /// Blocks until the next expected read, which must be `what`, has finished, and returns its data.
  /// If it failed, this and later calls throw its exception, until `stop`.
  ReadData take(const Reading& what);
  /// Drops all expected and finished reads. Blocks until no read is in progress.
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
  std::deque<Result> done_;  // of the first reads of `expected_`, in the same order
  bool reading_ = false, finished_ = false;
  std::thread thread_;
};

}  // namespace pipewright::exec
