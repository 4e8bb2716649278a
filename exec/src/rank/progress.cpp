#include "progress.hpp"

#include "job/watch.hpp"

namespace pipewright::exec {

Progress::Progress(const std::function<void(const plan::Instruction&)>& told)
    : told_(told), at_(activity_of(end_of_step)) {}

void Progress::starting(const plan::Instruction& i) {
  at_.store(activity_of(i), std::memory_order_relaxed);
  moves_.store(moves_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (told_)
    told_(i);
}

void Progress::at_end_of_step() { at_.store(activity_of(end_of_step), std::memory_order_relaxed); }

Beat Progress::beat(int ranks) const {
  const auto at = at_.load(std::memory_order_relaxed);
  Beat beat;
  beat.at = activity_text(at);
  beat.in_action = true;  // the end of a step is no phase either, which may take any time
  beat.moves = moves_.load(std::memory_order_relaxed);
  if (const int other = waits_for_.load(std::memory_order_relaxed); other >= 0)
    beat.waits.push_back({{other}, beat.at});
  if (is_action(at))
    return beat;
  Wait& others = beat.waits.emplace_back(Wait{{}, beat.at});
  for (int rank = 0; rank < ranks; ++rank)
    others.ranks.push_back(rank);
  return beat;
}

}  // namespace pipewright::exec
