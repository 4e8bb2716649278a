#include "eager.hpp"

#include <algorithm>
#include <limits>

#include "progress.hpp"

namespace pipewright::plan::zero_bubble {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

struct Start {
  double time = never;
  int stage = 0;
  ActionKind kind = ActionKind::WeightGradient;
};

class Eager {
 public:
  explicit Eager(const Problem& problem)
      : problem_(problem), stages_(problem.costs.stages.size()) {}

  std::vector<Order> run() {
    for (Start next = first_start(); next.time < never; next = first_start())
      stages_[next.stage].run(next.kind, next.time, problem_.costs.stages[next.stage]);
    std::vector<Order> orders;
    for (Progress& progress : stages_)
      orders.push_back(std::move(progress.order));
    return orders;
  }

 private:
  /// Returns when microbatch `next` arrives from the neighbor, whose end times are `ends`.
  double arrival(const std::vector<double>& ends, int next) const {
    return next < static_cast<int>(ends.size()) ? ends[next] + problem_.costs.transfer.value
                                                : never;
  }
  double forward_start(int stage) const {
    const Progress& progress = stages_[stage];
    if (progress.forwards() == problem_.microbatches ||
        progress.held_units() + 2 > problem_.memory_limits[stage])
      return never;
    if (stage == 0)
      return progress.free_at;
    return std::max(progress.free_at,
                    arrival(stages_[stage - 1].forward_ends, progress.forwards()));
  }
  double input_gradient_start(int stage) const {
    const Progress& progress = stages_[stage];
    if (progress.input_gradients() == progress.forwards())
      return never;
    if (stage + 1 == problem_.stage_count())
      return progress.free_at;
    return std::max(progress.free_at,
                    arrival(stages_[stage + 1].input_gradient_ends, progress.input_gradients()));
  }
  double weight_gradient_start(int stage) const {
    const Progress& progress = stages_[stage];
    return progress.owed_weight_gradients() > 0 ? progress.free_at : never;
  }

  /// Returns the earliest possible start of all stages, so that no later start could have preceded
  /// it.
  Start first_start() const {
    Start first;
    const auto consider = [&](double time, int stage, ActionKind kind) {
      if (time < first.time)
        first = {time, stage, kind};
    };
    for (int stage = 0; stage < problem_.stage_count(); ++stage) {
      consider(input_gradient_start(stage), stage, ActionKind::InputGradient);
      consider(forward_start(stage), stage, ActionKind::Forward);
      consider(weight_gradient_start(stage), stage, ActionKind::WeightGradient);
    }
    return first;
  }

  const Problem& problem_;
  std::vector<Progress> stages_;
};

}  // namespace

std::vector<Order> eager_orders(const Problem& problem) { return Eager(problem).run(); }

}  // namespace pipewright::plan::zero_bubble
