#include "greedy.hpp"

#include <algorithm>

#include "progress.hpp"

namespace pipewright::plan::zero_bubble {
namespace {

class Greedy {
 public:
  Greedy(const Problem& problem, const GreedyPolicy& policy)
      : problem_(problem), policy_(policy), stages_(problem.costs.stages.size()) {}

  /// Builds the orders. After the warm-up, each round runs one input gradient on every stage, from
  /// the last stage to the first. Before it, some stages run a forward.
  std::vector<Order> run() {
    warm_up();
    run_input_gradients();
    for (int round = 1; round < problem_.microbatches; ++round) {
      run_forwards();
      run_input_gradients();
    }
    std::vector<Order> orders;
    for (int stage = 0; stage < count(); ++stage) {
      while (owes_weight_gradient(stage))
        run_weight_gradient(stage);
      orders.push_back(std::move(stages_[stage].order));
    }
    return orders;
  }

 private:
  int count() const { return problem_.stage_count(); }
  const PassTimes& cost(int stage) const { return problem_.costs.stages[stage]; }
  bool fits_forward(int stage, int held) const { return held + 2 <= problem_.memory_limits[stage]; }
  bool owes_weight_gradient(int stage) const { return stages_[stage].owed_weight_gradients() > 0; }

  /// Returns when the input of the next forward arrives.
  double forward_arrival(int stage) const {
    return stage == 0 ? 0
                      : stages_[stage - 1].forward_ends[stages_[stage].forwards()] +
                            problem_.costs.transfer.value;
  }
  /// Returns when the output gradient for the next input gradient arrives.
  double gradient_arrival(int stage) const {
    return stage == count() - 1
               ? 0
               : stages_[stage + 1].input_gradient_ends[stages_[stage].input_gradients()] +
                     problem_.costs.transfer.value;
  }

  void run_forward(int stage) {
    stages_[stage].run(ActionKind::Forward, forward_arrival(stage), cost(stage));
  }
  void run_input_gradient(int stage) {
    stages_[stage].run(ActionKind::InputGradient, gradient_arrival(stage), cost(stage));
  }
  void run_weight_gradient(int stage) {
    stages_[stage].run(ActionKind::WeightGradient, 0, cost(stage));
  }

  /// Returns how long a stage may idle without becoming the one with the most idle time.
  double idle_allowance(int stage) const {
    double most = 0;
    for (const Progress& progress : stages_)
      most = std::max(most, progress.idle);
    return most - stages_[stage].idle;
  }

  /// Runs weight gradients while the stage would otherwise wait for `arrival`.
  void fill_wait(int stage, double arrival) {
    const Progress& progress = stages_[stage];
    while (owes_weight_gradient(stage) &&
           progress.free_at + cost(stage).weight_gradient.value <= arrival)
      run_weight_gradient(stage);
    const double wait = arrival - progress.free_at;
    if (owes_weight_gradient(stage) && wait > 0 &&
        (policy_.overfill_waits || wait > idle_allowance(stage)))
      run_weight_gradient(stage);
  }

  /// Returns the number of forwards of each stage before its first input gradient. It is limited by
  /// the wait for that gradient, by memory, and by the stage before, which has more.
  std::vector<int> warm_up_forwards() const {
    std::vector<int> forwards(count(), 1);
    double arrival = 0;  // of the first output gradient
    for (int stage = count() - 1; stage >= 0; --stage) {
      const PassTimes& times = cost(stage);
      double free_at = stages_[stage].free_at;
      const auto has_time = [&] {
        return policy_.wait_for_first_gradient ? free_at + times.forward.value <= arrival
                                               : free_at < arrival;
      };
      while (stage < count() - 1 && forwards[stage] < problem_.microbatches &&
             fits_forward(stage, 2 * forwards[stage]) && has_time()) {
        free_at += times.forward.value;
        ++forwards[stage];
      }
      arrival =
          std::max(free_at, arrival) + times.input_gradient.value + problem_.costs.transfer.value;
    }
    for (int stage = 1; stage < count(); ++stage)
      if (forwards[stage - 1] < problem_.microbatches)
        forwards[stage] = std::max(1, std::min(forwards[stage], forwards[stage - 1] - 1));
    return forwards;
  }

  void warm_up() {
    for (int stage = 0; stage < count(); ++stage)
      run_forward(stage);
    const std::vector<int> forwards = warm_up_forwards();
    for (int stage = 0; stage < count(); ++stage)
      while (stages_[stage].forwards() < forwards[stage])
        run_forward(stage);
  }

  /// Returns true if the stage should wait for its next input gradient and not run a forward. Only
  /// a stage may wait that is far enough ahead for the next stage to have work in this round.
  bool holds_forward_back(int stage) const {
    if (!policy_.gradient_before_forward || stage == count() - 1)
      return false;
    const Progress& progress = stages_[stage];
    const Progress& next = stages_[stage + 1];
    if (progress.forwards() < next.forwards() + 2)
      return false;
    const double gradient = next.free_at + cost(stage + 1).forward.value +
                            cost(stage + 1).input_gradient.value + problem_.costs.transfer.value;
    if (progress.free_at >= gradient)
      return true;
    double end = progress.free_at + cost(stage).forward.value;
    int held = progress.held_units();
    for (int owed = progress.owed_weight_gradients(); owed > 0 && !fits_forward(stage, held);
         --owed, --held)
      end += cost(stage).weight_gradient.value;
    return end > gradient && gradient - progress.free_at <= idle_allowance(stage);
  }

  /// Returns which stages run a forward in this round. A stage whose successor runs none would only
  /// get further ahead.
  std::vector<bool> stages_with_forward() const {
    std::vector<bool> runs(count());
    for (int stage = count() - 1; stage >= 0; --stage)
      runs[stage] = stages_[stage].forwards() < problem_.microbatches &&
                    !holds_forward_back(stage) && (stage == count() - 1 || runs[stage + 1]);
    return runs;
  }

  void run_forwards() {
    const std::vector<bool> runs = stages_with_forward();
    for (int stage = 0; stage < count(); ++stage) {
      if (!runs[stage])
        continue;
      while (!fits_forward(stage, stages_[stage].held_units()))
        run_weight_gradient(stage);
      fill_wait(stage, forward_arrival(stage));
      run_forward(stage);
    }
  }

  void run_input_gradients() {
    for (int stage = count() - 1; stage >= 0; --stage) {
      fill_wait(stage, gradient_arrival(stage));
      // No other stage waits for the gradients of the first stage.
      while (stage == 0 && stages_[0].forwards() == problem_.microbatches &&
             owes_weight_gradient(0))
        run_weight_gradient(0);
      run_input_gradient(stage);
    }
  }

  const Problem& problem_;
  const GreedyPolicy policy_;
  std::vector<Progress> stages_;
};

}  // namespace

std::vector<Order> greedy_orders(const Problem& problem, const GreedyPolicy& policy) {
  return Greedy(problem, policy).run();
}

}  // namespace pipewright::plan::zero_bubble
