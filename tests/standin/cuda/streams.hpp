#pragma once

// Streams, events and graphs of the stand-in. A stream does its work in the order in which it was
// given: at once, on the thread that gives it, where nothing is before it, else on a thread of its
// own. What may wait, for an event or for another process, always goes to that thread.

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

/// A point in a stream's work that others wait for.
struct Moment {
  std::mutex mutex;
  std::condition_variable passed;
  bool done = false;
  bool captured = false;  // within a graph, where it is never passed
  std::uint64_t ns = 0;
  Clock clock;

  void pass();
  void wait();
  bool is_done();
};

/// What is done and what it is called, for those who listen.
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

  /// Gives it work. While the stream is captured, to the graph instead.
  void give(Work work);
  /// Waits for all that was given before, does the work on this thread and returns. Not for a
  /// stream that is captured.
  void perform(Work work);
  /// False where the stream is captured, which that ends.
  bool finish();
  bool is_idle();

  std::shared_ptr<Moment> record();
  /// False where one of the two is captured and the other is not.
  bool wait_for(const std::shared_ptr<Moment>& moment);
  void launch(const std::shared_ptr<const Graph>& graph);
  /// What memory the work given next uses.
  void comes_to(const Access& access);
  void comes_to_free(const void* memory, std::size_t bytes);

  void begin_capture();
  /// What is captured was tried as well and changes this memory: the end of the capture puts it
  /// back.
  void changes(void* memory, std::size_t bytes);
  bool is_captured();
  bool is_capture_broken();
  /// Whether it was a capture. What was captured must not wait for the device.
  bool break_capture();
  /// Null: it was broken.
  std::shared_ptr<Graph> end_capture();

 private:
  void do_now(Work& work);
  /// With the lock held, but for while it works.
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
  std::vector<std::pair<void*, std::vector<char>>> before_;  // of the capture
  std::mutex clock_mutex_;
  Clock clock_;
};

/// Null and the special handles are the default stream of the calling thread's device.
Stream& stream_of(cudaStream_t stream);
cudaStream_t new_stream(int device);
/// All that the device was given is done. False where something of it is captured.
bool finish_device(int device);

std::uint64_t now_ns();
void tell(PipewrightStandinWork work);
/// What a call is to be told as; `name` of a kernel.
PipewrightStandinWork named(PipewrightStandinWork::Kind kind, const char* call,
                            const char* name = "");

struct Event {
  std::mutex mutex;
  std::shared_ptr<Moment> moment;  // null: never recorded
  bool timed = true;

  std::shared_ptr<Moment> last() {
    const std::lock_guard lock(mutex);
    return moment;
  }
};

}  // namespace standin
