#pragma once

// `pipewright plan --at p95`: chooses plans by a percentile of their iteration times, sampled from
// recorded steps. The search finds the leading plans by the time without jitter; these are sampled.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "commands/plan_options.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/sim/draws/draws.hpp"

namespace pipewright::cli {

struct PlanAt {
  std::string word;  // "p95"
  double fraction = 0;
  sim::Jitter jitter;
  sim::SamplingOptions options{};
};

/// Number of plans to sample for each plan to be shown.
inline constexpr int leading_plans = 3;

/// Returns the number of plans to search for.
inline int plans_to_find(const SearchedOptions& options, const std::optional<PlanAt>& at) {
  return at ? leading_plans * options.top : options.top;
}

/// Reads the record. Returns nothing if plans are chosen by the time without jitter.
std::optional<PlanAt> plan_at(const PercentileOptions& options);

/// Returns the percentile of the scenario's iteration time in seconds.
double seconds_at(const PlanAt& at, const plan::Scenario& scenario, const plan::LayerCosts& costs);

/// Keeps the `most` best plans by the time that `seconds_of(plan)` returns, and stores that in
/// their `at_s`.
template <class Plan, class SecondsOf>
void choose_at(std::vector<Plan>& plans, int most, const SecondsOf& seconds_of) {
  for (Plan& plan : plans)
    plan.at_s = seconds_of(plan);
  std::stable_sort(plans.begin(), plans.end(),
                   [](const Plan& a, const Plan& b) { return a.at_s < b.at_s; });
  if (plans.size() > static_cast<std::size_t>(most))
    plans.erase(plans.begin() + most, plans.end());
}

}  // namespace pipewright::cli
