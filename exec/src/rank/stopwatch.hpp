#pragma once

// When a rank ran each instruction of a pass, for whoever observes it.

#include <array>
#include <mutex>
#include <vector>

#include "pipewright/exec/memory/memory_meter.hpp"
#include "pipewright/exec/rank/executor.hpp"
#include "timestamp.hpp"

namespace pipewright::exec {

class Stopwatch {
 public:
  /// `in_order_of_device`: the device tells the times, at the end of the pass. References are kept.
  Stopwatch(int rank, const Observer& observer, const MemoryAccount& account,
            bool in_order_of_device)
      : rank_(rank),
        observer_(observer),
        account_(account),
        in_order_of_device_(in_order_of_device) {}

  /// `observed`: whether anybody is told.
  void begin(Clock::time_point step_begin, bool observed);
  Timestamp now() const { return Timestamp::now(observer_ != nullptr); }
  /// A part of an action was a collective of shards; of two actions that take turns, of the first
  /// (0) or the second.
  void note_shards(const Interval& part, int strand = 0);
  /// What ends now, with the collectives of shards in it; of the rank's thread.
  void note(const plan::Instruction& i, const Timestamp& begin, plan::Bytes held_before);
  /// The same of one of two that take turns, for whoever tells of both when they are over.
  TimestampedRecord ended(const plan::Instruction& i, const Timestamp& begin,
                          plan::Bytes held_before, int strand);
  void tell_in_time(const TimestampedRecord& noted);
  /// The same from a thread beside: told by the next `tell_beside` of the rank's thread.
  void note_beside(const plan::Instruction& i, const Timestamp& begin, plan::Bytes held_before);
  void tell_beside();
  /// Once the device has come to all of it.
  void tell_late();

 private:
  TimestampedRecord noted(const plan::Instruction& i, const Timestamp& begin,
                          plan::Bytes held_before) const;
  void tell(const TimestampedRecord& noted) const;

  int rank_;
  const Observer& observer_;
  const MemoryAccount& account_;
  bool in_order_of_device_;
  bool observed_ = false;
  Timestamp begin_;  // of the pass, on this rank
  plan::Seconds begin_in_step_;
  std::array<std::vector<Interval>, 2> shards_;  // of the actions under way
  std::vector<TimestampedRecord> late_;
  std::mutex mutex_;
  std::vector<TimestampedRecord> beside_;
};

}  // namespace pipewright::exec
