#pragma once

// A search over a space of plans. Each candidate has a proven lower bound of its time, and a price,
// which is an exact simulation. Only candidates that may still be among the best are simulated. The
// space defines candidates and plans.

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/error.hpp"

namespace pipewright::search {

using SearchClock = std::chrono::steady_clock;

/// Counts of the candidates of a search by their result.
struct SearchAccount {
  std::size_t candidates = 0;
  std::size_t impossible = 0;  // the schedule does not support the sizes, or ranks would deadlock
  std::string why_impossible;  // the first reason why a candidate cannot be planned
  std::size_t too_large = 0;   // for a device's memory
  std::size_t bounded = 0;     // proved to be slower than the best
  std::size_t simulated = 0;   // simulated, and fit
  double seconds = 0;
  double best_seconds = 0;  // of these, until the best plan was found
  bool interrupted = false;
};

template <class Plan>
struct SearchAnswer : SearchAccount {
  std::vector<Plan> plans;  // best first
  /// The plan that is faster than the best, does not fit and needs least memory; if nothing fits,
  /// the plan that needs least memory.
  std::optional<Plan> nearest;
};

template <class Plan>
struct SearchOptions {
  int most_plans = 10;
  /// Instead of the fastest plans, returns the Pareto front of time and memory.
  bool pareto = false;
  /// Simulates every candidate regardless of its bound: the same answer, more slowly.
  bool exhaustive = false;
  /// Weighs every plan that may be shown completely before it counts as one that fits.
  bool weighs_whole = false;
  /// Looks for the plan that is nearest to fitting.
  bool finds_nearest = true;
  /// Called from time to time with the number of decided candidates and the best plan so far (null:
  /// none yet). If it returns false, the search ends with what it has.
  std::function<bool(std::size_t decided, std::size_t candidates, const Plan* best)> progress{};
};

/// The bounds of a candidate before it is simulated. `candidate` is its number in its space.
struct Bound {
  std::size_t candidate = 0;
  double peak_bytes = 0;  // of the rank that holds most; 0: only the simulation gives it
  double least_s = 0;
};

/// The figures by which two plans are compared. A plan of a search has both as members:
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

/// The best plans so far: a number of the fastest, preferring less memory among equals; or the
/// Pareto front of time and memory.
template <class Plan>
class BestPlans {
 public:
  BestPlans(int most, bool pareto) : most_(static_cast<std::size_t>(most)), pareto_(pareto) {}

  const std::vector<Plan>& plans() const { return plans_; }
  std::vector<Plan> take() { return std::move(plans_); }
  bool is_full() const { return !pareto_ && plans_.size() >= most_; }
  /// Returns true if a plan with at least these figures cannot be among the best.
  bool beat(const PlanFigures& figures) const {
    if (!pareto_)
      return is_full() && figures.iteration_s > figures_of(plans_.back()).iteration_s;
    return std::any_of(plans_.begin(), plans_.end(),
                       [&](const Plan& plan) { return is_no_worse(figures_of(plan), figures); });
  }
  /// Returns the time above which a plan cannot be among the best.
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
///   std::size_t size(): the number of candidates, numbered from 0
///   bool is_likely(std::size_t candidate): likely among the best; these are simulated first
///   double least_peak(std::size_t candidate): bytes of the rank that holds most; 0: only the
///     simulation gives them
///   double least_s(std::size_t candidate): seconds
///   Plan price(const Bound&, double most_s): the simulation. Throws InputError or Infeasible if
///     the candidate cannot be planned. For a plan that takes longer than `most_s` seconds it may
///     return only the time.
///   double memory(): bytes of a device; 0: unlimited
/// and, if a price does not include all of the memory,
///   double least_need(std::size_t candidate): bytes, a tighter bound
///   void weigh(Plan&): sets a lower bound of the plan's need
///   void weigh_whole(Plan&, double most_bytes): sets the plan's need, which may take a while;
///     stops early with a lower bound once that is at least `most_bytes`
/// which are called for plans that may be shown.
template <class Space>
class Search {
 public:
  using Plan = typename Space::Plan;

  Search(Space& space, const SearchOptions<Plan>& options, SearchClock::time_point started)
      : space_(space),
        options_(options),
        started_(started),
        best_(options.most_plans, options.pareto) {}

  SearchAnswer<Plan> run() {
    answer_.candidates = space_.size();
    for (const bool are_likely : {true, false}) {
      bound_those(are_likely);
      simulate_those();
    }
    if (options_.finds_nearest)
      find_nearest();
    answer_.plans = best_.take();
    answer_.seconds = seconds();
    return std::move(answer_);
  }

 private:
  static constexpr double no_limit = std::numeric_limits<double>::infinity();
  static constexpr std::size_t asked_every = 4096;  // candidates between calls of `progress` while
                                                    // they are bounded

  double seconds() const {
    return std::chrono::duration<double>(SearchClock::now() - started_).count();
  }

  bool fits(double peak_bytes) const {
    return space_.memory() <= 0 || peak_bytes <= space_.memory();
  }

  void bound_those(bool are_likely) {
    candidates_.clear();
    for (std::size_t at = 0; at < answer_.candidates && !answer_.interrupted; ++at) {
      if (space_.is_likely(at) != are_likely)
        continue;
      Bound bound{.candidate = at, .peak_bytes = space_.least_peak(at)};
      if (fits(bound.peak_bytes)) {
        bound.least_s = space_.least_s(at);
        candidates_.push_back(bound);
      } else {  // its time is bounded only if it may be the nearest
        too_large_.push_back(bound);
        ++answer_.too_large;
      }
      if ((candidates_.size() + too_large_.size()) % asked_every == 0)
        continues();
    }
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Bound& a, const Bound& b) { return a.least_s < b.least_s; });
  }

  std::size_t decided() const {
    return answer_.impossible + answer_.too_large + answer_.bounded + answer_.simulated;
  }

  bool continues() {
    const Plan* const best = best_.plans().empty() ? nullptr : &best_.plans().front();
    if (options_.progress && !options_.progress(decided(), answer_.candidates, best))
      answer_.interrupted = true;
    return !answer_.interrupted;
  }

  /// Simulates the candidates in the order of their bounds.
  void simulate_those() {
    for (std::size_t at = 0; at < candidates_.size(); ++at) {
      if (answer_.interrupted || !continues())
        return;
      const Bound& bound = candidates_[at];
      if (options_.exhaustive || !best_.beat({bound.least_s, bound.peak_bytes})) {
        simulate(bound);
      } else if (options_.pareto) {
        ++answer_.bounded;
      } else {  // all following candidates are bounded, too
        answer_.bounded += candidates_.size() - at;
        return;
      }
    }
  }

  void simulate(const Bound& bound) {
    std::string why;
    std::optional<Plan> plan = priced(bound, best_.slowest_s(), why);
    if (!plan) {
      if (answer_.impossible++ == 0)
        answer_.why_impossible = why;
      return;
    }
    if (!fits(weighed(*plan))) {
      too_large_.push_back({.candidate = bound.candidate,
                            .peak_bytes = figures_of(*plan).peak_bytes,
                            .least_s = bound.least_s});
      ++answer_.too_large;
      return;
    }
    ++answer_.simulated;
    if (best_.plans().empty() || figures_of(*plan) < figures_of(best_.plans().front()))
      answer_.best_seconds = seconds();
    best_.add(std::move(*plan));
  }

  /// Returns nothing if the candidate cannot be planned, and sets the reason.
  std::optional<Plan> priced(const Bound& bound, double most_s, std::string& why) {
    try {
      return space_.price(bound, most_s);
    } catch (const plan::InputError& error) {
      why = error.what();
    } catch (const plan::Infeasible& error) {
      why = error.what();
    }
    return {};
  }

  /// Returns the bytes of the rank that holds most, as precisely as needed.
  double weighed(Plan& plan) {
    const auto peak = [&] { return figures_of(plan).peak_bytes; };
    if constexpr (requires { space_.weigh(plan); }) {
      if (options_.pareto || !best_.beat(figures_of(plan)))
        space_.weigh(plan);
      if ((options_.pareto || options_.weighs_whole) && fits(peak()) &&
          !best_.beat(figures_of(plan)))
        space_.weigh_whole(plan, no_limit);
    }
    return peak();
  }

  /// Finds the nearest plan, starting with the candidates that need least memory.
  void find_nearest() {
    std::stable_sort(too_large_.begin(), too_large_.end(),
                     [](const Bound& a, const Bound& b) { return a.peak_bytes < b.peak_bytes; });
    const auto most_s = [&] {
      return best_.plans().empty() ? no_limit : figures_of(best_.plans().front()).iteration_s;
    };
    const auto nearest_bytes = [&] {
      return answer_.nearest ? figures_of(*answer_.nearest).peak_bytes : no_limit;
    };
    std::string why;
    for (Bound& bound : too_large_) {
      if (bound.peak_bytes >= nearest_bytes())
        break;
      bound.least_s = space_.least_s(bound.candidate);
      if (bound.least_s >= most_s())
        continue;
      if constexpr (requires { space_.least_need(bound.candidate); })
        if (space_.least_need(bound.candidate) >= nearest_bytes())
          continue;
      std::optional<Plan> plan = priced(bound, most_s(), why);
      if (!plan && answer_.why_impossible.empty())
        answer_.why_impossible = why;
      if (!plan || figures_of(*plan).iteration_s >= most_s())
        continue;
      if constexpr (requires { space_.weigh_whole(*plan, no_limit); })
        space_.weigh_whole(*plan, nearest_bytes());
      if (const double bytes = figures_of(*plan).peak_bytes; fits(bytes)) {  // bound too high
        ++answer_.simulated, --answer_.too_large;
        best_.add(std::move(*plan));
      } else if (bytes < nearest_bytes()) {
        answer_.nearest = std::move(plan);
      }
    }
    if (answer_.nearest && figures_of(*answer_.nearest).iteration_s >= most_s())
      answer_.nearest.reset();
  }

  Space& space_;
  const SearchOptions<Plan>& options_;
  const SearchClock::time_point started_;
  BestPlans<Plan> best_;
  std::vector<Bound> candidates_, too_large_;  // too large: by their bounds
  SearchAnswer<Plan> answer_;
};

/// Runs the search. `started` is the time from which durations are counted.
template <class Space>
SearchAnswer<typename Space::Plan> search(Space& space,
                                          const SearchOptions<typename Space::Plan>& options,
                                          SearchClock::time_point started = SearchClock::now()) {
  return Search<Space>(space, options, started).run();
}

}  // namespace pipewright::search
