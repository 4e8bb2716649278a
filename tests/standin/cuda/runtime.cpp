// CUDA's runtime: devices, memory, streams and events.

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>
#include <utility>

#include "devices.hpp"
#include "launches.hpp"
#include "result.hpp"
#include "streams.hpp"

namespace standin {
namespace {

thread_local cudaError_t last = cudaSuccess;

Event& event_of(cudaEvent_t event) { return *reinterpret_cast<Event*>(event); }

bool is_on_device(const void* memory) {
  cudaPointerAttributes attributes;
  describe(memory, attributes);
  return attributes.type == cudaMemoryTypeDevice;
}
bool is_pageable(const void* memory) {
  cudaPointerAttributes attributes;
  describe(memory, attributes);
  return attributes.type == cudaMemoryTypeUnregistered;
}

/// Returns the accesses to device memory. Accesses of host threads to host memory are not visible.
std::vector<Access> accesses_of(void* to, const void* from, std::size_t bytes, const char* what) {
  std::vector<Access> accesses;
  if (from != nullptr && is_on_device(from))
    accesses.push_back({from, bytes, false, what});
  if (is_on_device(to))
    accesses.push_back({to, bytes, true, what});
  return accesses;
}

int kind_of(const void* to, const void* from) {
  const bool to_device = is_on_device(to), from_device = is_on_device(from);
  if (from_device)
    return to_device ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost;
  return to_device ? cudaMemcpyHostToDevice : cudaMemcpyHostToHost;
}

/// Copies as NVIDIA's runtime does: a copy from memory that is not pinned has read it when the call
/// returns.
cudaError_t copy(Stream& stream, void* to, const void* from, std::size_t bytes, const char* call) {
  Work work{.told = named(PipewrightStandinWork::Copy, call),
            .task = [to, from, bytes] { std::memcpy(to, from, bytes); },
            .accesses = accesses_of(to, from, bytes, call)};
  work.told.bytes = bytes;
  work.told.copy_kind = kind_of(to, from);
  if (!is_pageable(from) && !is_pageable(to)) {
    stream.give(std::move(work));
    return done();
  }
  if (stream.break_capture())
    return done(cudaErrorStreamCaptureUnsupported);
  stream.perform(std::move(work));
  return done();
}

cudaError_t set(Stream& stream, void* memory, int value, std::size_t bytes, const char* call) {
  Work work{.told = named(PipewrightStandinWork::Set, call),
            .task = [=] { std::memset(memory, value, bytes); },
            .accesses = accesses_of(memory, nullptr, bytes, call)};
  work.told.bytes = bytes;
  stream.give(std::move(work));
  return done();
}

cudaError_t make_event(cudaEvent_t* event, unsigned flags) {
  auto* const made = new Event;
  made->timed = (flags & cudaEventDisableTiming) == 0;
  *event = reinterpret_cast<cudaEvent_t>(made);
  return done();
}

}  // namespace

cudaError_t done(cudaError_t result) {
  if (result != cudaSuccess)
    last = result;
  return result;
}
cudaError_t take_last_error() { return std::exchange(last, cudaSuccess); }
cudaError_t last_error() { return last; }

}  // namespace standin

using namespace standin;

extern "C" {

// ---- devices

cudaError_t cudaGetDeviceCount(int* count) {
  load_operators();
  *count = device_count();
  return done(*count == 0 ? cudaErrorNoDevice : cudaSuccess);
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device();
  return done(device_count() == 0 ? cudaErrorNoDevice : cudaSuccess);
}
cudaError_t cudaSetDevice(int device) {
  return done(set_device(device) ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  describe(device, *properties);
  return done();
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
  *value = attribute(device, which);
  return done();
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02x:00.0", device + 1);
  return done();
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return done();
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 1;
  return done();
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return done(); }
cudaError_t cudaDeviceSynchronize() {
  return done(finish_device(current_device()) ? cudaSuccess : cudaErrorStreamCaptureUnsupported);
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return done();
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return done();
}
const char* cudaGetErrorName(cudaError_t) { return "cudaError"; }
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    case cudaErrorStreamCaptureIsolation:
      return "dependency created on uncaptured work in another stream";
    default:
      return "an error of the stand-in";
  }
}
cudaError_t cudaGetLastError() { return take_last_error(); }
cudaError_t cudaPeekAtLastError() { return last_error(); }

// ---- memory

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  *memory = allocate(current_device(), bytes);
  return done(*memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}
cudaError_t cudaFree(void* memory) {
  if (memory == nullptr)
    return done();
  finish_device(current_device());  // as NVIDIA's does
  return done(release(memory) ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  *memory = allocate_host(bytes);
  return done();
}
cudaError_t cudaFreeHost(void* memory) {
  return done(release(memory) ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned) {
  register_host(memory, bytes);
  return done();
}
cudaError_t cudaHostUnregister(void* memory) {
  return done(unregister_host(memory) ? cudaSuccess : cudaErrorHostMemoryNotRegistered);
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = free_memory(current_device());
  *total = memory_of_device();
  return done();
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory) {
  describe(memory, *attributes);
  return done();
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  Stream& stream = stream_of(nullptr);
  const cudaError_t result = copy(stream, to, from, bytes, "cudaMemcpy");
  stream.finish();
  return result;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  return copy(stream_of(stream), to, from, bytes, "cudaMemcpyAsync");
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes,
                                cudaStream_t stream) {
  return copy(stream_of(stream), to, from, bytes, "cudaMemcpyPeerAsync");
}
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  return set(stream_of(nullptr), memory, value, bytes, "cudaMemset");
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  return set(stream_of(stream), memory, value, bytes, "cudaMemsetAsync");
}

// ---- streams

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  *stream = new_stream(current_device());
  return done();
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithPriority(stream, 0, 0);
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return done(); }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return done(stream_of(stream).finish() ? cudaSuccess : cudaErrorStreamCaptureUnsupported);
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (stream_of(stream).break_capture())
    return done(cudaErrorStreamCaptureUnsupported);
  return stream_of(stream).is_idle() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const auto moment = event_of(event).last();
  if (moment && !stream_of(stream).wait_for(moment))
    return done(cudaErrorStreamCaptureIsolation);
  return done();
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  stream_of(stream).give({.told = named(PipewrightStandinWork::HostFunction, "cudaLaunchHostFunc"),
                          .task = [=] { function(data); },
                          .may_wait = true});
  return done();
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned) {
  stream_of(stream).give({.task = [=] { callback(stream, cudaSuccess, data); }, .may_wait = true});
  return done();
}

// ---- events

cudaError_t cudaEventCreate(cudaEvent_t* event) { return make_event(event, 0); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return make_event(event, flags);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &event_of(event);
  return done();
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  auto moment = stream_of(stream).record();
  Event& own = event_of(event);
  const std::lock_guard lock(own.mutex);
  own.moment = std::move(moment);
  return done();
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const auto moment = event_of(event).last();
  if (!moment)
    return cudaSuccess;
  if (moment->captured)
    return done(cudaErrorStreamCaptureUnsupported);
  if (!moment->is_done())
    return cudaErrorNotReady;
  host_has_waited(moment->clock);
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const auto moment = event_of(event).last();
  if (!moment)
    return done();
  if (moment->captured)
    return done(cudaErrorStreamCaptureUnsupported);
  moment->wait();
  host_has_waited(moment->clock);
  return done();
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const auto first = event_of(start).last(), last_one = event_of(end).last();
  if (!first || !last_one || !event_of(start).timed || !event_of(end).timed)
    return done(cudaErrorInvalidResourceHandle);
  if (!first->is_done() || !last_one->is_done())
    return done(cudaErrorNotReady);
  *milliseconds =
      static_cast<float>(static_cast<std::int64_t>(last_one->ns - first->ns)) / 1'000'000;
  return done();
}

}  // extern "C"
