#include "lane.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <map>

namespace pipewright::exec {
namespace {

thread_local const Lane* current_lane = nullptr;

/// What reads another device's memory for this thread.
const Lane& copying_lane(at::Device device) {
  thread_local std::map<at::DeviceIndex, Lane> lanes;
  const auto found = lanes.find(device.index());
  return found != lanes.end()
             ? found->second
             : lanes.try_emplace(device.index(), Lane::of(device, /*urgent=*/true)).first->second;
}

at::Tensor moved(const at::Tensor& tensor, at::Device device) {
  const at::NoGradGuard no_grad;
  at::Tensor copy = tensor.to(device, /*non_blocking=*/true);
  return copy.set_requires_grad(tensor.requires_grad());
}

}  // namespace

Lane Lane::of(at::Device device, bool urgent) {
  if (device.is_cpu())
    return {};
  return Lane(c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, urgent));
}

void Lane::finish() const {
  if (stream_)
    c10::impl::VirtualGuardImpl(stream_->device_type()).synchronizeStream(*stream_);
}

OnLane::OnLane(const Lane& lane) : before_(current_lane) {
  current_lane = &lane;
  if (lane.stream())
    guard_.emplace(*lane.stream());
}

OnLane::~OnLane() { current_lane = before_; }

const Lane& OnLane::current() {
  static const Lane cpu;
  return current_lane == nullptr ? cpu : *current_lane;
}

Mark Mark::at_end(c10::EventFlag flag) {
  Mark mark;
  if (const auto& stream = OnLane::current().stream()) {
    mark.event_ = std::make_shared<c10::Event>(stream->device_type(), flag);
    mark.event_->record(*stream);
  }
  return mark;
}

void Mark::wait() const {
  if (const auto& stream = OnLane::current().stream(); stream && event_)
    event_->block(*stream);
}

plan::Seconds Mark::since(const Mark& earlier) const {
  return {earlier.event_->elapsedTime(*event_) / 1000};  // LibTorch counts milliseconds
}

Tensors adopt(Tensors tensors, const Mark& made) {
  const Lane& own = OnLane::current();
  made.wait();
  for (at::Tensor& tensor : tensors) {
    if (!tensor.defined() || tensor.is_cpu())
      continue;
    if (tensor.device() == own.device()) {
      tensor.record_stream(*own.stream());
      continue;
    }
    const OnLane reading(copying_lane(tensor.device()));
    made.wait();
    tensor.record_stream(*OnLane::current().stream());
    // The copy runs on the source's current stream; LibTorch makes the target's wait for it, which
    // is still the own lane's.
    tensor = moved(tensor, own.device());
  }
  return tensors;
}

at::Tensor put_on(const at::Tensor& tensor, at::Device device) {
  if (device.is_cpu() || !tensor.defined() || !tensor.is_cpu())
    return tensor;
  // From other memory than this the copy would hold up the thread.
  return tensor.pin_memory().to(device, /*non_blocking=*/true);
}

}  // namespace pipewright::exec
