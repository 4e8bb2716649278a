#pragma once

// A time on the CPU, or on a GPU the moment when a stream reaches it.

#include <chrono>
#include <vector>

#include "pipewright/exec/device/stream.hpp"
#include "pipewright/exec/rank/executor.hpp"

namespace pipewright::exec {

using Clock = std::chrono::steady_clock;

struct Timestamp {
  Clock::time_point host;
  Event device;

  /// Returns the current time; with `timed`, also an event whose time can be read.
  static Timestamp now(bool timed) { return {Clock::now(), timed ? Event::timed() : Event()}; }
  /// Returns the time since an earlier timestamp of the same stream or device. Both must have
  /// passed.
  plan::Seconds since(const Timestamp& earlier) const {
    if (!device.on_cpu() && !earlier.device.on_cpu())
      return device.since(earlier.device);
    return {std::chrono::duration<double>(host - earlier.host).count()};
  }
};

struct Interval {
  Timestamp begin, end;
};

/// A collective of a tensor-parallel or expert-parallel group, which is a part of an action. How
/// long it waited for a late member is known at the end of the pass.
struct SharedInterval : Interval {
  const plan::Seconds* late = nullptr;
};

/// A record whose times are not known yet.
struct TimestampedRecord {
  InstructionRecord record;
  Interval when;
  std::vector<SharedInterval> shards;
};

}  // namespace pipewright::exec
