#include "timing.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace pipewright::plan::zero_bubble {

Timing::Timing(const Problem& problem)
    : problem_(problem),
      stages_(problem.costs.stages.size()),
      forward_ends_(problem.costs.stages.size() * problem.microbatches),
      input_gradient_ends_(forward_ends_.size()) {}

Spans Timing::spans(const std::vector<Order>& orders) {
  std::fill(stages_.begin(), stages_.end(), Progress{});
  const int count = problem_.stage_count();
  const auto actions_done = [&] {
    std::size_t done = 0;
    for (const Progress& progress : stages_)
      done += progress.actions;
    return done;
  };
  // Forwards move down the stages and input gradients up.
  const std::size_t all = 3 * forward_ends_.size();
  for (std::size_t done = 0; done < all;) {
    for (int stage = 0; stage < count; ++stage)
      advance(stage, orders[stage]);
    for (int stage = count - 1; stage >= 0; --stage)
      advance(stage, orders[stage]);
    const std::size_t before = std::exchange(done, actions_done());
    if (done == before)
      return {.longest = std::numeric_limits<double>::infinity(),
              .mean = std::numeric_limits<double>::infinity()};
  }
  Spans spans;
  for (const Progress& progress : stages_) {
    spans.longest = std::max(spans.longest, progress.free_at - progress.start);
    spans.mean += (progress.free_at - progress.start) / count;
  }
  return spans;
}

/// Runs the stage until an input is missing.
void Timing::advance(int stage, const Order& order) {
  Progress& progress = stages_[stage];
  for (; progress.actions < static_cast<int>(order.size()); ++progress.actions) {
    const ActionKind kind = order[progress.actions];
    if (kind == ActionKind::Forward) {
      if (!run_forward(stage))
        return;
    } else if (kind == ActionKind::InputGradient) {
      if (!run_input_gradient(stage))
        return;
    } else {
      progress.free_at += problem_.costs.stages[stage].weight_gradient.value;
    }
  }
}

bool Timing::run_forward(int stage) {
  Progress& progress = stages_[stage];
  double arrival = 0;
  const std::size_t at = stage * problem_.microbatches + progress.forwards;
  if (stage > 0) {
    if (stages_[stage - 1].forwards == progress.forwards)
      return false;
    arrival = forward_ends_[at - problem_.microbatches] + problem_.costs.transfer.value;
  }
  const double start = std::max(progress.free_at, arrival);
  if (progress.forwards++ == 0)
    progress.start = start;
  forward_ends_[at] = progress.free_at = start + problem_.costs.stages[stage].forward.value;
  return true;
}

bool Timing::run_input_gradient(int stage) {
  Progress& progress = stages_[stage];
  double arrival = 0;
  const std::size_t at = stage * problem_.microbatches + progress.input_gradients;
  if (stage + 1 < problem_.stage_count()) {
    if (stages_[stage + 1].input_gradients == progress.input_gradients)
      return false;
    arrival = input_gradient_ends_[at + problem_.microbatches] + problem_.costs.transfer.value;
  }
  progress.free_at =
      std::max(progress.free_at, arrival) + problem_.costs.stages[stage].input_gradient.value;
  input_gradient_ends_[at] = progress.free_at;
  ++progress.input_gradients;
  return true;
}

}  // namespace pipewright::plan::zero_bubble
