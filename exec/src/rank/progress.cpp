#include "progress.hpp"

#include <fmt/format.h>

#include "job/watch.hpp"
#include "pipewright/exec/log.hpp"

namespace pipewright::exec {

Progress::Progress(const std::function<void(const plan::Instruction&)>& told)
    : told_(told), at_(activity_of(end_of_step)) {}

void Progress::starting(std::uint64_t activity) {
  at_.store(activity, std::memory_order_relaxed);
  meetings_.store(0, std::memory_order_relaxed);
  moves_.store(moves_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

/// Reports an instruction alone, even if it is fused with the next one.
void Progress::starting(const plan::Instruction& i) {
  log_at(i);
  log(LogSubject::Schedule, LogLevel::Debug, "begins");
  starting(activity_of(i));
  if (!told_)
    return;
  plan::Instruction alone = i;
  alone.fused_with_next = false;
  told_(alone);
}

void Progress::starting(const plan::Instruction& first, const plan::Instruction& second) {
  log_at(first);
  log(LogSubject::Schedule, LogLevel::Debug,
      [&] { return fmt::format("begins, in turns with {}", plan::to_string(second)); });
  starting(activity_of(first, second));
  if (!told_)
    return;
  told_(first);
  told_(second);
}

void Progress::at_end_of_step() { at_.store(activity_of(end_of_step), std::memory_order_relaxed); }

void Progress::meets(const Meeting& meeting) {
  meetings_.store(meetings_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  meeting_.store(&meeting, std::memory_order_relaxed);
  moves_.store(moves_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

Heartbeat Progress::beat(const JobRank& self) const {
  const auto at = at_.load(std::memory_order_relaxed);
  Heartbeat beat;
  beat.at = activity_text(at);
  beat.in_action = true;  // not a phase: a stall at the end of a step is a failure
  beat.moves = moves_.load(std::memory_order_relaxed);
  if (const int other = waits_for_.load(std::memory_order_relaxed); other >= 0)
    beat.waits.push_back({{other}, beat.at});
  if (const Meeting* const meeting = meeting_.load(std::memory_order_relaxed))
    beat.waits.push_back({meeting->ranks, fmt::format("collective {} of the {} in {}",
                                                      meetings_.load(std::memory_order_relaxed),
                                                      meeting->who, beat.at)});
  if (is_action(at))
    return beat;
  Wait& others = beat.waits.emplace_back(Wait{{}, beat.at});
  for (int rank = 0; rank < self.steps.ranks; ++rank)
    others.ranks.push_back(rank);
  return beat;
}

}  // namespace pipewright::exec
