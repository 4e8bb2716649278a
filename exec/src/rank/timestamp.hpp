#pragma once

// When something happens: on the CPU now, on a GPU when its stream comes to it.

#include <chrono>
#include <vector>

#include "pipewright/exec/device/stream.hpp"
#include "pipewright/exec/rank/executor.hpp"

namespace pipewright::exec {

using Clock = std::chrono::steady_clock;

struct Timestamp {
  Clock::time_point host;
  Event device;

  /// `timed`: whether anybody will ask when that was.
  static Timestamp now(bool timed) { return {Clock::now(), timed ? Event::timed() : Event()}; }
  /// The time between two of them, of one stream or device, that have passed.
  plan::Seconds since(const Timestamp& earlier) const {
    if (!device.on_cpu() && !earlier.device.on_cpu())
      return device.since(earlier.device);
    return {std::chrono::duration<double>(host - earlier.host).count()};
  }
};

struct Interval {
  Timestamp begin, end;
};

/// A collective of shards, which is a part of an action. How long it waited for one that was late
/// is known at the end of the pass.
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
