#pragma once

// The stand-in's streams, events and graphs. A stream does its work in order: at once on the
// calling thread if no work is pending, otherwise on its own thread. Work that may wait, for an
// event or for another process, always goes to that thread.

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "../standin.hpp"
#include "order.hpp"

namespace standin {

using Task = std::function<void()>;

/// A point in a stream's work for which others can wait.
struct Moment {
  std::mutex mutex;
  std::condition_variable passed;
  bool done = false;
  bool captured = false;  // within a graph, where it is never reached
  std::uint64_t ns = 0;
  Clock clock;

  void pass();
  void wait();
  bool is_done();
};

/// A task of a stream, and its description for listeners.
struct Work {
  PipewrightStandinWork told{};
  Task task{};
  std::vector<Access> accesses{};
  bool may_wait = false;
};

struct Graph {
  std::vector<Work> works;
};

class Stream {
 public:
  explicit Stream(int device);

  int device() const { return device_; }
  std::uint32_t number() const { return number_; }

  /// Adds work to the stream; during a capture, to the graph.
  void give(Work work);
  /// Waits for all earlier work, then runs this work on the calling thread. Not for a stream under
  /// capture.
  void perform(Work work);
  /// Waits for all work. During a capture, invalidates the capture and returns false.
  bool finish();
  bool is_idle();

  std::shared_ptr<Moment> record();
  /// Returns false if one of the two is captured and the other is not.
  bool wait_for(const std::shared_ptr<Moment>& moment);
  void launch(const std::shared_ptr<const Graph>& graph);
  /// Records that the next work uses this memory.
  void comes_to(const Access& access);
  void comes_to_free(const void* memory, std::size_t bytes);

  void begin_capture();
  /// Records that trying captured work changes this memory, so that the end of the capture restores
  /// it.
  void changes(void* memory, std::size_t bytes);
  bool is_captured();
  bool is_capture_broken();
  /// Invalidates a capture, because captured work must not wait for the device. Returns false if
  /// there was no capture.
  bool break_capture();
  /// Returns null if the capture was invalidated.
  std::shared_ptr<Graph> end_capture();

 private:
  void do_now(Work& work);
  /// Runs work; requires the lock, which it releases meanwhile.
  void do_alone(Work& work, std::unique_lock<std::mutex>& lock);
  void come_to(const std::vector<Access>& accesses);
  void do_queued();
  void queue(Work work);
  void changes_locked(void* memory, std::size_t bytes);

  const int device_;
  const std::uint32_t number_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> waiting_;
  bool busy_ = false, has_thread_ = false;
  std::shared_ptr<Graph> capturing_;
  bool broken_ = false;
  std::vector<std::pair<void*, std::vector<char>>> before_;  // contents before the capture
  std::mutex clock_mutex_;
  Clock clock_;
};

/// Returns a stream. Null and the special handles are the default stream of the calling thread's
/// device.
Stream& stream_of(cudaStream_t stream);
cudaStream_t new_stream(int device);
/// Waits for all work of the device. Returns false if some of it is being captured.
bool finish_device(int device);

std::uint64_t now_ns();
void tell(PipewrightStandinWork work);
/// Returns the description of a call for listeners; `name` is that of a kernel.
PipewrightStandinWork named(PipewrightStandinWork::Kind kind, const char* call,
                            const char* name = "");

struct Event {
  std::mutex mutex;
  std::shared_ptr<Moment> moment;  // null if it was never recorded
  bool timed = true;

  std::shared_ptr<Moment> last() {
    const std::lock_guard lock(mutex);
    return moment;
  }
};

}  // namespace standin
