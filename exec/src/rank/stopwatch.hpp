#pragma once

// Records when a rank ran each instruction of a pass, for its observer.

#include <array>
#include <mutex>
#include <vector>

#include "pipewright/exec/memory/memory_meter.hpp"
#include "pipewright/exec/rank/executor.hpp"
#include "timestamp.hpp"

namespace pipewright::exec {

class Stopwatch {
 public:
  /// With `late`, times are known only at the end of the pass, for example on a GPU. Keeps
  /// references to its arguments.
  Stopwatch(int rank, const Observer& observer, const MemoryAccount& account, bool late)
      : rank_(rank), observer_(observer), account_(account), tells_late_(late) {}

  /// Begins a pass. Records are reported only if it is `observed`.
  void begin(Clock::time_point step_begin, bool observed);
  Timestamp now() const { return Timestamp::now(observer_ != nullptr); }
  /// Records that a part of an action was a collective of its group. For two actions that take
  /// turns, `strand` is 0 for the first and 1 for the second.
  void note_shards(const SharedInterval& part, int strand = 0);
  /// Records an instruction of the rank's thread that ends now, with the collectives in it.
  void note(const plan::Instruction& i, const Timestamp& begin, plan::Bytes held_before);
  /// Returns such a record for one of two actions that take turns; the caller reports both when
  /// they are over.
  TimestampedRecord ended(const plan::Instruction& i, const Timestamp& begin,
                          plan::Bytes held_before, int strand);
  void tell_in_time(const TimestampedRecord& noted);
  /// Records an instruction that ends now on the background thread. The rank's thread reports it
  /// with its next `tell_beside`.
  void note_beside(const plan::Instruction& i, const Timestamp& begin, plan::Bytes held_before);
  void tell_beside();
  /// Reports the records whose times are now known: the device has done all work, and the waits for
  /// late group members are computed.
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
  std::array<std::vector<SharedInterval>, 2> shards_;  // of the running actions
  std::vector<TimestampedRecord> late_;
  std::mutex mutex_;
  std::vector<TimestampedRecord> beside_;
};

}  // namespace pipewright::exec
