#include "kept_uses.hpp"

#include <ATen/ATen.h>

#include <mutex>
#include <utility>
#include <vector>

#include "pipewright/exec/device/stream.hpp"

namespace pipewright::exec {
namespace {

struct State {
  std::mutex mutex;
  int captures = 0;
  std::vector<std::pair<at::Tensor, c10::Stream>> kept;  // with the stream that uses it
};

State& state() {
  static State* const one = new State;  // tensors may outlive the end of main
  return *one;
}

}  // namespace

void record_use(const at::Tensor& tensor) {
  const std::lock_guard lock(state().mutex);
  const c10::Stream stream = OnStream::current().native().value();
  if (state().captures > 0)
    state().kept.emplace_back(tensor.detach(), stream);
  else
    tensor.record_stream(stream);
}

CaptureUnderWay::CaptureUnderWay() {
  const std::lock_guard lock(state().mutex);
  ++state().captures;
}

CaptureUnderWay::~CaptureUnderWay() {
  // The lock is held meanwhile, so that the next capture begins after this.
  const std::lock_guard lock(state().mutex);
  if (--state().captures > 0)
    return;
  for (const auto& [tensor, stream] : state().kept)
    tensor.record_stream(stream);
  state().kept.clear();
}

}  // namespace pipewright::exec
