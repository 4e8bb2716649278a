#pragma once

// The order of work on devices. On a GPU a call only submits work to the calling thread's current
// stream and returns; streams run concurrently. A rank has one stream for each kind of concurrent
// work. Events make one stream wait for another; the device waits then, and not the thread. On the
// CPU work is finished when its call returns, so streams and events have no effect.

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>

#include <memory>
#include <optional>

#include "pipewright/exec/device/own_backward.hpp"
#include "pipewright/exec/tensors.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::exec {

/// A stream of a device. The CPU has none, because work there is finished at once.
class Stream {
 public:
  Stream() = default;  // the CPU
  explicit Stream(c10::Stream stream) : stream_(stream) {}
  /// Returns a new stream. The device prefers urgent ones when it must choose.
  static Stream of(at::Device device, bool urgent);

  const std::optional<c10::Stream>& native() const { return stream_; }
  at::Device device() const { return stream_ ? stream_->device() : at::Device(at::kCPU); }
  /// Blocks the thread until the device has finished all work of the stream.
  void finish() const;
  /// Returns true if the device has finished all work of the stream.
  bool is_done() const;

 private:
  std::optional<c10::Stream> stream_;
};

/// While it exists, this thread's work on the stream's device goes to the stream, and the thread
/// runs its backwards itself.
class OnStream {
 public:
  explicit OnStream(const Stream& stream);
  ~OnStream();
  OnStream(const OnStream&) = delete;
  OnStream& operator=(const OnStream&) = delete;

  /// Returns the stream of this thread, or the CPU's if none exists.
  static const Stream& current();

 private:
  const Stream* before_;
  std::optional<c10::StreamGuard> guard_;
  std::optional<OwnBackward> own_backward_;
};

/// A point in the work of a stream. May be passed to other threads.
class Event {
 public:
  Event() = default;  // nothing to wait for

  /// Returns an event after all work submitted to the current stream so far.
  static Event now() { return at_end(c10::EventFlag::PYTORCH_DEFAULT); }
  /// Returns such an event that also records the time at which the device reaches it.
  static Event timed() { return at_end(c10::EventFlag::BACKEND_DEFAULT); }

  /// Makes later work of the current stream wait for the event.
  void wait() const;
  /// Returns the time between two timed events that the device has passed.
  plan::Seconds since(const Event& earlier) const;
  bool on_cpu() const { return event_ == nullptr; }

 private:
  static Event at_end(c10::EventFlag flag);

  std::shared_ptr<c10::Event> event_;
};

/// Makes tensors of another stream usable on the current stream. `made`: the event after which they
/// are complete; the current stream waits for it. Their memory is not reused before the current
/// stream has finished with them. Tensors of another device are copied to the stream's device.
Tensors adopt(Tensors tensors, const Event& made);

/// Copies a CPU tensor to a device, in the order of the current stream and without blocking.
/// Returns the same tensor if the device is the CPU.
at::Tensor put_on(const at::Tensor& tensor, at::Device device);

}  // namespace pipewright::exec
