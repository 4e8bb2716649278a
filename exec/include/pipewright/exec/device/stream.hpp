#pragma once

// The order of work on devices. On a GPU a call only submits work to a stream, the calling thread's
// current one, and returns; streams run beside each other. A rank has a stream for each thing
// that it does at the same time, and events say where one stream waits for another: the device
// waits then, and not the thread. On the CPU work is done when its call returns, so there
// all of this is nothing.

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>

#include <memory>
#include <optional>

#include "pipewright/exec/device/own_backward.hpp"
#include "pipewright/exec/tensors.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::exec {

/// A stream of a device; of the CPU none, as work there is done at once.
class Stream {
 public:
  Stream() = default;  // of the CPU
  explicit Stream(c10::Stream stream) : stream_(stream) {}
  /// A stream of its own; an urgent one goes first where the device must choose.
  static Stream of(at::Device device, bool urgent);

  const std::optional<c10::Stream>& native() const { return stream_; }
  at::Device device() const { return stream_ ? stream_->device() : at::Device(at::kCPU); }
  /// The thread waits until the device has done all that the stream was given.
  void finish() const;
  /// Whether it has.
  bool is_done() const;

 private:
  std::optional<c10::Stream> stream_;
};

/// While it lives, what this thread does on the stream's device goes to the stream, and it computes
/// its backwards itself.
class OnStream {
 public:
  explicit OnStream(const Stream& stream);
  ~OnStream();
  OnStream(const OnStream&) = delete;
  OnStream& operator=(const OnStream&) = delete;

  /// The stream of this thread; the CPU's where there is none.
  static const Stream& current();

 private:
  const Stream* before_;
  std::optional<c10::StreamGuard> guard_;
  std::optional<OwnBackward> own_backward_;
};

/// A point in what a stream was given. May be passed to other threads.
class Event {
 public:
  Event() = default;  // nothing to wait for

  /// After all that the current stream has been given.
  static Event now() { return at_end(c10::EventFlag::PYTORCH_DEFAULT); }
  /// One that also notes when the device comes to it.
  static Event timed() { return at_end(c10::EventFlag::BACKEND_DEFAULT); }

  /// What the current stream is given from now on comes after it.
  void wait() const;
  /// The time between two timed events that a device has passed.
  plan::Seconds since(const Event& earlier) const;
  bool on_cpu() const { return event_ == nullptr; }

 private:
  static Event at_end(c10::EventFlag flag);

  std::shared_ptr<c10::Event> event_;
};

/// Gives tensors that another stream has made, up to `made`, to the current stream: it waits for
/// them, their memory is not used for others before it is done with them, and they lie on its
/// device.
Tensors adopt(Tensors tensors, const Event& made);

/// A copy of a CPU tensor on a device, in the order of the current stream; nobody waits for it. The
/// same tensor where the device is the CPU.
at::Tensor put_on(const at::Tensor& tensor, at::Device device);

}  // namespace pipewright::exec
