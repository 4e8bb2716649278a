#pragma once

// A search over a space of plans: each candidate has a bound that its time is proved not to fall
// below, and a price, which is an exact simulation. Only those that may still be among the best are
// simulated. What a candidate and a plan are, the space says.

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

namespace pipewright::sim {

/// How many of the candidates were what, of every search.
struct SearchAccount {
  std::size_t candidates = 0;
  std::size_t impossible = 0;  // the schedule does not take the sizes, or ranks would deadlock
  std::size_t too_large = 0;   // for a device's memory
  std::size_t bounded = 0;     // proved to be slower than the best
  std::size_t simulated = 0;   // and fits
  double seconds = 0;
  bool interrupted = false;
};

template <class Plan>
struct SearchAnswer : SearchAccount {
  std::vector<Plan> plans;  // best first
  /// The plan that would be faster than the best, does not fit and is nearest to fitting; where
  /// nothing fits, the one that needs least memory.
  std::optional<Plan> nearest;
};

template <class Plan>
struct SearchOptions {
  int most_plans = 10;
  /// Instead of the fastest: all plans than which none is faster with as little memory.
  bool pareto = false;
  /// No candidate is spared by its bound: the same answer, later.
  bool exhaustive = false;
  /// Told now and then how many candidates are decided, and the best so far (null: none yet). The
  /// search ends with what it has where it answers false.
  std::function<bool(std::size_t decided, std::size_t candidates, const Plan* best)> progress{};
};

/// What is known of a candidate before it is simulated: by number in its space.
struct Bound {
  std::size_t candidate = 0;
  double least_s = 0;
  double peak_bytes = 0;  // of the rank that holds most; 0: the simulation tells
};

/// What two plans are held against each other by. A plan of a search has both as members:
/// `iteration_s` in seconds and `peak_bytes` of the rank that holds most.
struct PlanFigures {
  double iteration_s = 0;
  double peak_bytes = 0;
  friend auto operator<=>(const PlanFigures&, const PlanFigures&) = default;
};
template <class Plan>
PlanFigures figures_of(const Plan& plan) {
  return {plan.iteration_s, static_cast<double>(plan.peak_bytes)};
}

/// The best plans so far: so many of the fastest, of equals those that need less memory; or the
/// front, than which none is faster with as little memory.
template <class Plan>
class BestPlans {
 public:
  BestPlans(int most, bool pareto) : most_(static_cast<std::size_t>(most)), pareto_(pareto) {}

  const std::vector<Plan>& plans() const { return plans_; }
  std::vector<Plan> take() { return std::move(plans_); }
  bool is_full() const { return !pareto_ && plans_.size() >= most_; }
  /// Whether a plan of at least these figures has no place.
  bool beat(const PlanFigures& figures) const {
    if (!pareto_)
      return is_full() && figures.iteration_s > figures_of(plans_.back()).iteration_s;
    return std::any_of(plans_.begin(), plans_.end(),
                       [&](const Plan& plan) { return is_no_worse(figures_of(plan), figures); });
  }
  /// No plan that takes longer has a place.
  double slowest_s() const {
    return is_full() ? figures_of(plans_.back()).iteration_s
                     : std::numeric_limits<double>::infinity();
  }
  void add(Plan plan) {
    const PlanFigures own = figures_of(plan);
    if (pareto_) {
      if (beat(own))
        return;
      std::erase_if(plans_, [&](const Plan& one) { return is_no_worse(own, figures_of(one)); });
    }
    const auto place =
        std::upper_bound(plans_.begin(), plans_.end(), own,
                         [](const PlanFigures& a, const Plan& b) { return a < figures_of(b); });
    plans_.insert(place, std::move(plan));
    if (!pareto_ && plans_.size() > most_)
      plans_.pop_back();
  }

 private:
  static bool is_no_worse(const PlanFigures& a, const PlanFigures& b) {
    return a.iteration_s <= b.iteration_s && a.peak_bytes <= b.peak_bytes;
  }

  const std::size_t most_;
  const bool pareto_;
  std::vector<Plan> plans_;
};

/// A Space has a type `Plan` and
///   std::size_t size(): its candidates, by number from 0
///   Bound bound(std::size_t candidate)
///   std::optional<Plan> price(const Bound&, double most_s): the simulation; nothing where it
///   cannot
///     be planned. Of a plan that takes longer than `most_s` seconds it may tell the time alone.
///   double memory(): bytes of a device; 0: without an end
template <class Space>
class Search {
 public:
  using Plan = typename Space::Plan;

  Search(Space& space, const SearchOptions<Plan>& options)
      : space_(space), options_(options), best_(options.most_plans, options.pareto) {}

  SearchAnswer<Plan> run() {
    const auto started = std::chrono::steady_clock::now();
    answer_.candidates = space_.size();
    bound_all();
    simulate_all();
    answer_.plans = best_.take();
    find_nearest();
    answer_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    return std::move(answer_);
  }

 private:
  static constexpr double no_limit = std::numeric_limits<double>::infinity();
  static constexpr std::size_t asked_every = 4096;  // candidates, while they are bounded

  bool fits(double peak_bytes) const {
    return space_.memory() <= 0 || peak_bytes <= space_.memory();
  }

  void bound_all() {
    for (std::size_t at = 0; at < answer_.candidates; ++at) {
      const Bound bound = space_.bound(at);
      (fits(bound.peak_bytes) ? candidates_ : too_large_).push_back(bound);
      if ((at + 1) % asked_every == 0 && !goes_on(too_large_.size()))
        break;
    }
    answer_.too_large = too_large_.size();
    const auto is_faster = [](const Bound& a, const Bound& b) {
      return a.least_s != b.least_s ? a.least_s < b.least_s : a.candidate < b.candidate;
    };
    std::sort(candidates_.begin(), candidates_.end(), is_faster);
    std::sort(too_large_.begin(), too_large_.end(), is_faster);
  }

  bool goes_on(std::size_t decided) {
    const Plan* const best = best_.plans().empty() ? nullptr : &best_.plans().front();
    if (options_.progress && !options_.progress(decided, answer_.candidates, best))
      answer_.interrupted = true;
    return !answer_.interrupted;
  }

  /// In the order of their bounds.
  void simulate_all() {
    const std::size_t before = too_large_.size();
    for (std::size_t at = 0; at < candidates_.size(); ++at) {
      if (answer_.interrupted || !goes_on(before + at))
        return;
      const Bound& bound = candidates_[at];
      if (options_.exhaustive || !best_.beat({bound.least_s, bound.peak_bytes})) {
        simulate(bound);
      } else if (options_.pareto) {
        ++answer_.bounded;
      } else {  // so are all that follow
        answer_.bounded = candidates_.size() - at;
        return;
      }
    }
  }

  void simulate(const Bound& bound) {
    std::optional<Plan> plan = space_.price(bound, best_.slowest_s());
    if (!plan) {
      ++answer_.impossible;
      return;
    }
    if (!fits(figures_of(*plan).peak_bytes)) {
      ++answer_.too_large;
      return;
    }
    ++answer_.simulated;
    best_.add(std::move(*plan));
  }

  void find_nearest() {
    if (answer_.plans.empty()) {
      const auto smallest = std::min_element(
          too_large_.begin(), too_large_.end(),
          [](const auto& a, const auto& b) { return a.peak_bytes < b.peak_bytes; });
      if (smallest != too_large_.end())
        answer_.nearest = space_.price(*smallest, no_limit);
      return;
    }
    const double best = figures_of(answer_.plans.front()).iteration_s;
    std::erase_if(too_large_, [&](const Bound& bound) { return bound.least_s >= best; });
    std::stable_sort(too_large_.begin(), too_large_.end(),
                     [](const Bound& a, const Bound& b) { return a.peak_bytes < b.peak_bytes; });
    for (const Bound& bound : too_large_) {
      if (answer_.nearest && bound.peak_bytes >= figures_of(*answer_.nearest).peak_bytes)
        break;
      std::optional<Plan> plan = space_.price(bound, best);
      if (!plan || figures_of(*plan).iteration_s >= best)
        continue;
      if (!answer_.nearest ||
          figures_of(*plan).peak_bytes < figures_of(*answer_.nearest).peak_bytes)
        answer_.nearest = std::move(plan);
    }
  }

  Space& space_;
  const SearchOptions<Plan>& options_;
  BestPlans<Plan> best_;
  std::vector<Bound> candidates_, too_large_;  // too large: what the bound knew
  SearchAnswer<Plan> answer_;
};

template <class Space>
SearchAnswer<typename Space::Plan> search(Space& space,
                                          const SearchOptions<typename Space::Plan>& options) {
  return Search<Space>(space, options).run();
}

}  // namespace pipewright::sim
