#pragma once

// A recorder of a device's activity.

#include <c10/core/Device.h>

#include <memory>
#include <string>

#include "pipewright/profiler/activity/gpu_record.hpp"

namespace pipewright::profiler {

class ActivitySource {
 public:
  virtual ~ActivitySource() = default;
  /// Returns the name that reports show.
  virtual std::string name() const = 0;
  /// Returns true if calls only submit work, which a device does later.
  virtual bool on_device() const = 0;

  /// Returns the time of the clock that records use.
  virtual Nanoseconds now() = 0;
  /// Records from `start` to `stop`.
  virtual void start() = 0;
  virtual void stop() = 0;
  /// Labels the work that this thread submits from here to `close`.
  virtual void open(std::uint64_t label) = 0;
  virtual void close() = 0;
  /// Returns the records since the last call. Call it after the device has done all of the work.
  virtual Activity collect() = 0;
};

/// Records LibTorch's operators on the CPU, by the host's clock.
std::unique_ptr<ActivitySource> operator_source();

/// Records the kernels, copies and memory sets of NVIDIA's GPUs with CUPTI; only one such source
/// can exist at a time. It is tried on `device`, by default the calling thread's current GPU.
/// Throws InputError that says why it is impossible: no library, no GPU, no permission, another
/// program that uses it, or a CUPTI that does not report which calls submitted which work.
std::unique_ptr<ActivitySource> cupti_source(at::Device device = at::kCUDA);

}  // namespace pipewright::profiler
