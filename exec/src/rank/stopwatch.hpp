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
  /// `late`: times are known at the end of the pass, such as those that a device tells. References
  /// are kept.
  Stopwatch(int rank, const Observer& observer, const MemoryAccount& account, bool late)
      : rank_(rank), observer_(observer), account_(account), tells_late_(late) {}

  /// `observed`: whether anybody is told.
  void begin(Clock::time_point step_begin, bool observed);
  Timestamp now() const { return Timestamp::now(observer_ != nullptr); }
  /// A part of an action was a collective of shards; of two actions that take turns, of the first
  /// (0) or the second.
  void note_shards(const SharedInterval& part, int strand = 0);
  /// What ends now, with the collectives of shards in it; of the rank's thread.
  void note(const plan::Instruction& i, const Timestamp& begin, plan::Bytes held_before);
  /// The same of one of two that take turns, for whoever tells of both when they are over.
  TimestampedRecord ended(const plan::Instruction& i, const Timestamp& begin,
                          plan::Bytes held_before, int strand);
  void tell_in_time(const TimestampedRecord& noted);
  /// The same from a thread beside: told by the next `tell_beside` of the rank's thread.
  void note_beside(const plan::Instruction& i, const Timestamp& begin, plan::Bytes held_before);
  void tell_beside();
  /// Once the device has come to all of it, and what waited for shards knows how long.
  void tell_late();

 private:
  TimestampedRecord noted(const plan::Instruction& i, const Timestamp& begin,
                          plan::Bytes held_before) const;
  void tell(const TimestampedRecord& noted) const;

  int rank_;
  const Observer& observer_;
  const MemoryAccount& account_;
  bool tells_late_;
  bool observed_ = false;
  Timestamp begin_;  // of the pass, on this rank
  plan::Seconds begin_in_step_;
  std::array<std::vector<SharedInterval>, 2> shards_;  // of the actions under way
  std::vector<TimestampedRecord> late_;
  std::mutex mutex_;
  std::vector<TimestampedRecord> beside_;
};

}  // namespace pipewright::exec
