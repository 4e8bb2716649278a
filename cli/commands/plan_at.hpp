#pragma once

// `pipewright plan --at p95`: plans chosen by what most of their iterations stay below, each drawn
// from what was recorded. The search finds the leading ones by the time without jitter; these are
// drawn.

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
  sim::DrawOptions options{};
};

/// So many are drawn for each plan that is to be shown.
inline constexpr int leading_plans = 3;

/// So many plans are searched for.
inline int plans_to_find(const SearchedOptions& options, const std::optional<PlanAt>& at) {
  return at ? leading_plans * options.top : options.top;
}

/// Nothing where plans are chosen by the time without jitter. Reads the record.
std::optional<PlanAt> plan_at(const PercentileOptions& options);

/// Seconds of the scenario's iteration at that place.
double seconds_at(const PlanAt& at, const plan::Scenario& scenario, const plan::LayerCosts& costs);

/// The `most` best by the time that `seconds_of(plan)` gives, which each has as `at_s` from then
/// on.
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
