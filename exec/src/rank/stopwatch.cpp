#include "stopwatch.hpp"

#include <algorithm>
#include <utility>

namespace pipewright::exec {

void Stopwatch::begin(Clock::time_point step_begin, bool observed) {
  observed_ = observed && observer_ != nullptr;
  begin_ = now();
  begin_in_step_ = {std::chrono::duration<double>(begin_.host - step_begin).count()};
  shards_ = {};
  late_.clear();
  beside_.clear();
}

TimestampedRecord Stopwatch::noted(const plan::Instruction& i, const Timestamp& begin,
                                   plan::Bytes held_before) const {
  return {{rank_, i, {}, {}, held_before, account_.peak(), account_.held()}, {begin, now()}, {}};
}

void Stopwatch::note(const plan::Instruction& i, const Timestamp& begin, plan::Bytes held_before) {
  if (!observed_)
    return;
  tell_in_time(ended(i, begin, held_before, 0));
}

TimestampedRecord Stopwatch::ended(const plan::Instruction& i, const Timestamp& begin,
                                   plan::Bytes held_before, int strand) {
  TimestampedRecord record = noted(i, begin, held_before);
  record.shards = std::exchange(shards_[static_cast<std::size_t>(strand)], {});
  return record;
}

void Stopwatch::note_shards(const SharedInterval& part, int strand) {
  if (observed_)
    shards_[static_cast<std::size_t>(strand)].push_back(part);
}

void Stopwatch::note_beside(const plan::Instruction& i, const Timestamp& begin,
                            plan::Bytes held_before) {
  if (!observed_)
    return;
  const std::lock_guard lock(mutex_);
  beside_.push_back(noted(i, begin, held_before));
}

void Stopwatch::tell_beside() {
  std::vector<TimestampedRecord> beside;
  {
    const std::lock_guard lock(mutex_);
    std::swap(beside, beside_);
  }
  for (const TimestampedRecord& each : beside)
    tell_in_time(each);
}

void Stopwatch::tell_late() {
  for (const TimestampedRecord& each : std::exchange(late_, {}))
    tell(each);
}

void Stopwatch::tell_in_time(const TimestampedRecord& noted) {
  if (!observed_)
    return;
  if (tells_late_)
    late_.push_back(noted);
  else
    tell(noted);
}

void Stopwatch::tell(const TimestampedRecord& noted) const {
  InstructionRecord record = noted.record;
  record.start = begin_in_step_ + noted.when.begin.since(begin_);
  record.end = begin_in_step_ + noted.when.end.since(begin_);
  for (const SharedInterval& part : noted.shards) {
    const plan::Seconds seconds = part.end.since(part.begin);
    record.shards += seconds;
    record.late += std::min(seconds, *part.late);
  }
  observer_(record);
}

}  // namespace pipewright::exec
