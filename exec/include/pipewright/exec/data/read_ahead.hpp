#pragma once

// Reads the microbatches of a rank before it comes to their LOADs, on a thread beside its own, so
// that a LOAD is the wait for one.

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

/// What a stage needs of a microbatch: inputs for the first one, targets and their weight for the
/// last one.
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

/// Throws what the Dataset throws.
ReadData read(const Reading& what);

/// Of a rank. What has been read and not been taken is on nobody's account of memory; what is taken
/// is on that of the thread that takes it, if reading made it.
class ReadAhead {
 public:
  /// Reads at most `ahead` microbatches that nobody has taken; 0: `take` reads. `begin`: what the
  /// thread does first.
  explicit ReadAhead(int ahead, std::function<void()> begin = {});
  /// Returns when no read is under way.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// What will be taken from now on, in this order. Where all that was expected before begins it,
  /// what has been read of that is kept; else it is let go. Nothing: as it was.
  void expect(std::vector<Reading> what);
  /// The next one of these, once it is there. Throws what reading it threw, until `stop`.
  ReadData take(const Reading& what);
  /// Expects nothing more. Returns when no read is under way.
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
  std::deque<Result> done_;  // of the first of these
  bool reading_ = false, finished_ = false;
  std::thread thread_;
};

}  // namespace pipewright::exec
