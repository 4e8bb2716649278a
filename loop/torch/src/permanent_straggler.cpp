#include "pipewright/loop_torch/permanent_straggler.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright::loop {
namespace {

/// Returns the duration of a step if the rank were not slow. Without a comparison with earlier
/// steps this is an upper bound.
double step_without(const Pace& slow) {
  return is_slow_by_earlier(slow) ? slow.usual_step_s
                                  : slow.step_s - (slow.compute_s - slow.prediction.usual_s);
}

}  // namespace

std::string PermanentStraggler::obstacle(const Pace& slow, int steps_left) const {
  const double usual_s = step_without(slow);
  if (steps_left * (slow.step_s - usual_s) <= settings_.restart_s)
    return fmt::format("the remaining {} steps do not make up for a restart, which takes {:.3g} s",
                       steps_left, settings_.restart_s);
  if (settings_.place == SlowPlace::IsReplaced)
    return {};
  const int ranks = settings_.pipeline_ranks;
  if (ranks == 1)
    return "there is no other rank";
  const double with_fewer_s = usual_s * ranks / (ranks - 1);
  if (with_fewer_s < slow.step_s)
    return {};
  return fmt::format(
      "a step takes {:.3g} s with it, and would take {:.3g} s with pipeline.ranks={}", slow.step_s,
      with_fewer_s, ranks - 1);
}

std::optional<std::string> PermanentStraggler::end_step(const std::optional<Pace>& slow,
                                                        double step_s, int steps_left,
                                                        const Say& say) {
  if (settings_.place == SlowPlace::Stays)
    return {};
  if (!slow) {
    cost_s_ = 0;
    after_step_.reset();
    return {};
  }
  cost_s_ += std::max(0.0, step_s - step_without(*slow));
  if (cost_s_ < settings_.restart_s)
    return {};
  if (const std::string why_not = obstacle(*slow, steps_left); !why_not.empty()) {
    if (!std::exchange(has_said_why_not_, true))
      say(fmt::format("rank {} is slow for good, and stays: {}", settings_.rank, why_not));
    after_step_.reset();
    return {};
  }
  const int newest = settings_.newest_step();
  after_step_ = after_step_.value_or(newest);
  if (newest <= *after_step_)
    return {};
  return fmt::format(
      "rank {} is slow for good: that has cost {:.3g} s, and a restart takes {:.3g} s",
      settings_.rank, cost_s_, settings_.restart_s);
}

}  // namespace pipewright::loop
