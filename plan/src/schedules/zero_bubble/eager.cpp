#include "eager.hpp"

#include <algorithm>
#include <limits>

namespace pipewright::plan::zero_bubble {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

/// A stage on its way through the step.
struct Progress {
  Order order;
  std::vector<double> forward_ends;         // by microbatch
  std::vector<double> input_gradient_ends;  // by microbatch
  int weight_gradients = 0;
  double free_at = 0;

  int forwards() const { return static_cast<int>(forward_ends.size()); }
  int input_gradients() const { return static_cast<int>(input_gradient_ends.size()); }
  int held() const { return 2 * forwards() - input_gradients() - weight_gradients; }
};

struct Start {
  double time = never;
  int stage = 0;
  ActionKind kind = ActionKind::WeightGradient;
};

class Eager {
 public:
  explicit Eager(const Problem& problem) : problem_(problem), stages_(problem.stages.size()) {}

  std::vector<Order> run() {
    for (Start next = first_start(); next.time < never; next = first_start())
      run_action(next);
    std::vector<Order> orders;
    for (Progress& progress : stages_)
      orders.push_back(std::move(progress.order));
    return orders;
  }

 private:
  /// When microbatch `next` has come through the neighbour, whose ends these are.
  double arrival(const std::vector<double>& ends, int next) const {
    return next < static_cast<int>(ends.size()) ? ends[next] + problem_.transfer : never;
  }
  double forward_start(int stage) const {
    const Progress& progress = stages_[stage];
    if (progress.forwards() == problem_.microbatches ||
        progress.held() + 2 > problem_.stages[stage].memory_limit)
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
    return progress.weight_gradients < progress.input_gradients() ? progress.free_at : never;
  }

  /// What starts first anywhere, so that nothing that starts later could have come before.
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

  void run_action(const Start& start) {
    Progress& progress = stages_[start.stage];
    const Stage& times = problem_.stages[start.stage];
    progress.order.push_back(start.kind);
    if (start.kind == ActionKind::Forward) {
      progress.free_at = start.time + times.forward;
      progress.forward_ends.push_back(progress.free_at);
    } else if (start.kind == ActionKind::InputGradient) {
      progress.free_at = start.time + times.input_gradient;
      progress.input_gradient_ends.push_back(progress.free_at);
    } else {
      progress.free_at = start.time + times.weight_gradient;
      ++progress.weight_gradients;
    }
  }

  const Problem& problem_;
  std::vector<Progress> stages_;
};

}  // namespace

std::vector<Order> eager_orders(const Problem& problem) { return Eager(problem).run(); }

}  // namespace pipewright::plan::zero_bubble
