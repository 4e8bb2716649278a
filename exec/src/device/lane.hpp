#pragma once

// The order of work on devices. On a GPU a call only submits work to a stream, the calling thread's
// current one, and returns; streams run beside each other. A rank has a lane, which is a stream,
// for each thing that it does at the same time, and marks say where one lane waits for another: the
// device waits then, and not the thread. On the CPU work is done when its call returns, so there
// all of this is nothing.

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>

#include <memory>
#include <optional>

#include "pipewright/exec/tensors.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::exec {

class Lane {
 public:
  Lane() = default;  // of the CPU
  explicit Lane(c10::Stream stream) : stream_(stream) {}
  /// A stream of its own; an urgent one goes first where the device must choose.
  static Lane of(at::Device device, bool urgent);

  const std::optional<c10::Stream>& stream() const { return stream_; }
  at::Device device() const { return stream_ ? stream_->device() : at::Device(at::kCPU); }
  /// The thread waits until the device has done all that the lane was given.
  void finish() const;

 private:
  std::optional<c10::Stream> stream_;
};

/// While it lives, what this thread does on the lane's device is given to the lane.
class OnLane {
 public:
  explicit OnLane(const Lane& lane);
  ~OnLane();
  OnLane(const OnLane&) = delete;
  OnLane& operator=(const OnLane&) = delete;

  /// Of this thread; the CPU's where there is none.
  static const Lane& current();

 private:
  const Lane* before_;
  std::optional<c10::StreamGuard> guard_;
};

/// A point in what a lane was given. May be passed to other threads.
class Mark {
 public:
  Mark() = default;  // nothing to wait for

  /// After all that the current lane has been given.
  static Mark now() { return at_end(c10::EventFlag::PYTORCH_DEFAULT); }
  /// One that also notes when the device comes to it.
  static Mark timed() { return at_end(c10::EventFlag::BACKEND_DEFAULT); }

  /// What the current lane is given from now on comes after it.
  void wait() const;
  /// Of two timed marks that a device has passed.
  plan::Seconds since(const Mark& earlier) const;
  bool on_cpu() const { return event_ == nullptr; }

 private:
  static Mark at_end(c10::EventFlag flag);

  std::shared_ptr<c10::Event> event_;
};

/// Makes tensors that another lane has made, up to `made`, the current lane's: it waits for them,
/// their memory is not used for others before it is done with them, and they lie on its device.
Tensors adopt(Tensors tensors, const Mark& made);

/// A copy of a CPU tensor on a device, in the order of the current lane; nobody waits for it. The
/// same tensor where the device is the CPU.
at::Tensor put_on(const at::Tensor& tensor, at::Device device);

}  // namespace pipewright::exec
