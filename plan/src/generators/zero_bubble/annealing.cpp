#include "annealing.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "timing.hpp"

namespace pipewright::plan::zero_bubble {
namespace {

// These values were found by trial on thousands of small problems with a known optimum.
constexpr int farthest_move = 5;           // in positions
constexpr double first_temperature = 0.3;  // in multiples of the mean duration of an action
constexpr double last_temperature = 0.02;  // in the same unit
/// Weight of the stages' mean span, relative to the longest span.
constexpr double weight_of_mean = 0.02;
constexpr long steps_per_cooling = 35;      // multiplied by the number of actions
constexpr long timed_actions = 12'000'000;  // over all steps
/// Rounding error of times that are sums of the same durations in another order.
constexpr double rounding = 1e-9;

/// Moves the action at `from` to `to`; those in between shift by one.
struct Move {
  int stage = 0;
  int from = 0;
  int to = 0;
};

void apply(const Move& move, Order& order) {
  const auto from = order.begin() + move.from;
  const auto to = order.begin() + move.to;
  if (from < to)
    std::rotate(from, from + 1, to + 1);
  else
    std::rotate(to, from, from + 1);
}

/// Returns true if every microbatch runs forward, input gradient, weight gradient in this order,
/// within the memory limit.
bool is_sound(const Order& order, int memory_limit) {
  int forwards = 0;
  int input_gradients = 0;
  int weight_gradients = 0;
  for (const ActionKind kind : order) {
    (kind == ActionKind::Forward         ? forwards
     : kind == ActionKind::InputGradient ? input_gradients
                                         : weight_gradients)++;
    if (input_gradients > forwards || weight_gradients > input_gradients ||
        2 * forwards - input_gradients - weight_gradients > memory_limit)
      return false;
  }
  return true;
}

double energy_of(const Spans& spans) { return spans.longest + weight_of_mean * spans.mean; }

class Annealing {
 public:
  Annealing(const Problem& problem, std::vector<Order> orders, double bound)
      : problem_(problem),
        bound_(bound),
        timing_(problem),
        orders_(std::move(orders)),
        spans_(timing_.spans(orders_)),
        best_orders_(orders_),
        best_spans_(spans_) {}

  /// Repeats the cooling. Every second time it starts from the best orders so far, otherwise from
  /// the current ones, so that it does not search around one place only.
  std::vector<Order> run() {
    const long actions = 3L * problem_.stage_count() * problem_.microbatches;
    const long cooling = steps_per_cooling * actions;
    bool from_best = true;
    for (long left = timed_actions / actions; left > 0 && !done(); left -= cooling) {
      if (std::exchange(from_best, !from_best)) {
        orders_ = best_orders_;
        spans_ = best_spans_;
      }
      cool_down(std::min(left, cooling));
    }
    return best_orders_;
  }

 private:
  bool done() const { return best_spans_.longest <= bound_ * (1 + rounding); }

  void cool_down(long steps) {
    const double factor = std::pow(last_temperature / first_temperature, 1.0 / steps);
    double temperature = first_temperature * mean_time();
    for (long step = 0; step < steps && !done(); ++step, temperature *= factor)
      try_move(random_move(), temperature);
  }

  double mean_time() const {
    double sum = 0;
    for (const PassTimes& stage : problem_.costs.stages)
      sum += stage.forward.value + stage.input_gradient.value + stage.weight_gradient.value;
    return sum / (3 * problem_.stage_count());
  }

  int random_below(int limit) { return static_cast<int>(random_() % limit); }

  Move random_move() {
    const int stage = random_below(problem_.stage_count());
    const int actions = 3 * problem_.microbatches;
    const int early = random_below(actions);
    const int late = std::min(early + 1 + random_below(farthest_move), actions - 1);
    return random_below(2) == 0 ? Move{stage, early, late} : Move{stage, late, early};
  }

  void try_move(const Move& move, double temperature) {
    Order& order = orders_[move.stage];
    const auto [first, last] = std::minmax(move.from, move.to);
    if (std::count(order.begin() + first, order.begin() + last + 1, order[move.from]) ==
        last + 1 - first)
      return;  // the action is surrounded by its own kind, so the move would change nothing
    apply(move, order);
    if (is_sound(order, problem_.memory_limits[move.stage])) {
      const Spans spans = timing_.spans(orders_);
      if (accepts(energy_of(spans) - energy_of(spans_), temperature)) {
        spans_ = spans;
        keep_best();
        return;
      }
    }
    apply({move.stage, move.to, move.from}, order);
  }

  bool accepts(double growth, double temperature) {
    return growth <= 0 || std::exp(-growth / temperature) * (random_.max)() > random_();
  }

  void keep_best() {
    if (spans_ < best_spans_) {
      best_spans_ = spans_;
      best_orders_ = orders_;
    }
  }

  const Problem& problem_;
  const double bound_;
  Timing timing_;
  std::minstd_rand random_{1};
  std::vector<Order> orders_;
  Spans spans_;
  std::vector<Order> best_orders_;
  Spans best_spans_;
};

}  // namespace

std::vector<Order> anneal(const Problem& problem, std::vector<Order> orders, double bound) {
  return Annealing(problem, std::move(orders), bound).run();
}

}  // namespace pipewright::plan::zero_bubble
