#include "pipewright/exec/device/stream.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "kept_uses.hpp"

namespace pipewright::exec {
namespace {

/// Released events, for reuse: creating and destroying an event takes longer than recording it, and
/// each instruction takes two.
class EventPool {
 public:
  /// Returns an event for `stream`, which the caller records.
  std::shared_ptr<c10::Event> take(const c10::Stream& stream, c10::EventFlag flag) {
    const Kind kind{stream.device_type(), stream.device_index(), flag};
    const auto give_back = [this, kind](c10::Event* event) {
      const std::lock_guard lock(mutex_);
      free_[kind].emplace_back(event);
    };
    const std::lock_guard lock(mutex_);
    auto& free = free_[kind];
    if (free.empty())
      return {new c10::Event(stream.device_type(), flag), give_back};
    c10::Event* const event = free.back().release();
    free.pop_back();
    return {event, give_back};
  }

 private:
  using Kind = std::tuple<c10::DeviceType, c10::DeviceIndex, c10::EventFlag>;

  std::mutex mutex_;
  std::map<Kind, std::vector<std::unique_ptr<c10::Event>>> free_;
};

EventPool& event_pool() {
  static EventPool* const pool = new EventPool;  // never destroyed: at the end of the process the
                                                 // driver is gone
  return *pool;
}

thread_local const Stream* stream_of_thread = nullptr;

/// Returns the stream with which this thread reads another device's memory.
const Stream& copying_stream(at::Device device) {
  thread_local std::map<at::DeviceIndex, Stream> streams;
  const auto found = streams.find(device.index());
  return found != streams.end()
             ? found->second
             : streams.try_emplace(device.index(), Stream::of(device, /*urgent=*/true))
                   .first->second;
}

at::Tensor moved(const at::Tensor& tensor, at::Device device) {
  const at::NoGradGuard no_grad;
  at::Tensor copy = tensor.to(device, /*non_blocking=*/true);
  return copy.set_requires_grad(tensor.requires_grad());
}

}  // namespace

Stream Stream::of(at::Device device, bool urgent) {
  if (device.is_cpu())
    return {};
  return Stream(c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, urgent));
}

void Stream::finish() const {
  if (stream_)
    c10::impl::VirtualGuardImpl(stream_->device_type()).synchronizeStream(*stream_);
}

bool Stream::is_done() const {
  return !stream_ || c10::impl::VirtualGuardImpl(stream_->device_type()).queryStream(*stream_);
}

OnStream::OnStream(const Stream& stream) : before_(stream_of_thread) {
  stream_of_thread = &stream;
  if (!stream.native())
    return;
  guard_.emplace(*stream.native());
  own_backward_.emplace();
}

OnStream::~OnStream() { stream_of_thread = before_; }

const Stream& OnStream::current() {
  static const Stream cpu;
  return stream_of_thread == nullptr ? cpu : *stream_of_thread;
}

Event Event::at_end(c10::EventFlag flag) {
  Event event;
  if (const auto& stream = OnStream::current().native()) {
    event.event_ = event_pool().take(*stream, flag);
    event.event_->record(*stream);
  }
  return event;
}

void Event::wait() const {
  if (const auto& stream = OnStream::current().native(); stream && event_)
    event_->block(*stream);
}

plan::Seconds Event::since(const Event& earlier) const {
  return {earlier.event_->elapsedTime(*event_) / 1000};  // LibTorch counts milliseconds
}

Tensors adopt(Tensors tensors, const Event& made) {
  const Stream& own = OnStream::current();
  made.wait();
  for (at::Tensor& tensor : tensors) {
    if (!tensor.defined() || tensor.is_cpu())
      continue;
    if (tensor.device() == own.device()) {
      record_use(tensor);
      continue;
    }
    const OnStream reading(copying_stream(tensor.device()));
    made.wait();
    record_use(tensor);
    // The copy runs on the source device's current stream. LibTorch makes the target device's
    // current stream, which is still this rank's own, wait for it.
    tensor = moved(tensor, own.device());
  }
  return tensors;
}

at::Tensor put_on(const at::Tensor& tensor, at::Device device) {
  if (device.is_cpu() || !tensor.defined() || !tensor.is_cpu())
    return tensor;
  // A copy from unpinned memory would block the thread.
  return tensor.pin_memory().to(device, /*non_blocking=*/true);
}

}  // namespace pipewright::exec
