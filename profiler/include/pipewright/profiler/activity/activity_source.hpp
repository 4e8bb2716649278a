#pragma once

// Who watches what a device does.

#include <c10/core/Device.h>

#include <memory>
#include <string>

#include "pipewright/profiler/activity/gpu_record.hpp"

namespace pipewright::profiler {

class ActivitySource {
 public:
  virtual ~ActivitySource() = default;
  /// As reports name it.
  virtual std::string name() const = 0;
  /// Whether calls only ask for work, which a device does later.
  virtual bool on_device() const = 0;

  /// The clock of the records.
  virtual Nanoseconds now() = 0;
  /// What happens between the two is recorded.
  virtual void start() = 0;
  virtual void stop() = 0;
  /// What this thread asks for from here to `close` bears the label.
  virtual void open(std::uint64_t label) = 0;
  virtual void close() = 0;
  /// What was recorded since the last time; not before the device has done all of it.
  virtual Activity collect() = 0;
};

/// The operators of LibTorch that are computed on the CPU, by the host's clock.
std::unique_ptr<ActivitySource> operator_source();

/// The kernels, copies and sets of NVIDIA's GPUs, by CUPTI; one at a time. It is tried on `device`,
/// without a number on the one that this thread is at. Throws InputError that says why that cannot
/// be: no library, no GPU, no permission, somebody else who uses it, or a CUPTI that does not tell
/// which calls asked for what.
std::unique_ptr<ActivitySource> cupti_source(at::Device device = at::kCUDA);

}  // namespace pipewright::profiler
